// The conformance component on node-storm: `node nodestorm_component.js bolt`, with node-storm's folder in $NODE_STORM.
"use strict";
const storm = require(process.env.NODE_STORM);

const COMMON = ["emit", "ids", "direct", "log", "conf", "print", "throw", "sleep"];

// The steps; `out` is node-storm's collector, `extra` gives the anchors or the id of an emit.
class Steps {
  async work(steps, out) {
    for (const [name, ...rest] of steps) await this[`do_${name}`](out, ...rest);
  }

  async do_emit(out, values, options = {}) {
    const message = this.extra(options);
    if (options.stream !== undefined) message.stream = options.stream;
    if (options.task !== undefined) message.task = options.task;
    const ids = out.emit(values, message);
    if (options.ids) await this.do_emit(out, [["ids", await ids]]);
  }

  do_contract(out) { return this.do_emit(out, [["conformance", 1, this.knows]]); }
  do_conf(out, key) { return this.do_emit(out, [out.context().config()[key] ?? null]); }
  do_log(out, text) { out.log(text); }
  do_print(out, text) { console.log(text); }
  do_throw(out, text) { throw new Error(text); }
  do_sleep(out, seconds) { return new Promise((resolve) => setTimeout(resolve, seconds * 1000)); }
}

class BoltSteps extends Steps {
  knows = [...COMMON, "ack", "fail", "keep", "tuple"];
  kept = {};
  turn = Promise.resolve(); // inputs are worked on one after the other: one may be waiting for its task ids

  component() {
    const steps = this;
    return storm.bolt(function (tup) { steps.turn = steps.turn.then(() => steps.process(tup, this)); });
  }

  async process(tup, out) {
    this.current = tup;
    this.open = true;
    const steps = tup.tuple[0];
    await this.work(Array.isArray(steps) ? steps : [], out);
    if (this.open) this.do_ack(out);
  }

  named(name) { return name === "this" ? this.current : this.kept[name]; }
  extra(options) { return { anchors: (options.anchors ?? ["this"]).map((name) => this.named(name).id) }; }

  finish(how, name) {
    how(this.named(name));
    if (name === "this") this.open = false;
  }

  do_ack(out, name = "this") { this.finish((tup) => out.ack(tup), name); }
  do_fail(out, name = "this") { this.finish((tup) => out.fail(tup), name); }

  do_keep(out, name) {
    this.kept[name] = this.current;
    this.open = false;
  }

  do_tuple(out) {
    const { id, comp, stream, task, tuple } = this.current;
    return this.do_emit(out, [[id, comp, stream, task, tuple.slice(1)]]);
  }
}

class SpoutSteps extends Steps {
  knows = [...COMMON, "heard"];

  component() {
    const steps = this;
    const spout = storm.spout(function (sync) {
      steps.script ??= this.context().config()["conformance.script"] ?? [];
      steps.heard = ["next", ""];
      steps.work(steps.script.shift() ?? [["sleep", 0.002]], this).then(sync);
    });
    for (const command of ["ack", "fail", "activate", "deactivate"]) {
      spout.on(command, ({ id }) => {
        const out = spout.collector; // what a handler emits and its sync are left to the user
        steps.heard = [command, id ?? ""];
        steps.work((out.context().config()["conformance.on"] ?? {})[command] ?? [], out).then(() => out.sync());
      });
    }
    return spout;
  }

  extra(options) { return "id" in options ? { id: options.id } : {}; }
  do_heard(out) { return this.do_emit(out, [this.heard]); }
}

const component = new { bolt: BoltSteps, spout: SpoutSteps }[process.argv[2]]().component();
storm.submit({ tasks: { tested: component }, bolts: {} });
