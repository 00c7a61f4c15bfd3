// The conformance component on Storm's own storm.js: `node stormjs_component.js bolt`, with storm.js in $STORM_JS.
"use strict";
const storm = require(process.env.STORM_JS);

const COMMON = ["emit", "ids", "direct", "log", "conf", "context", "print", "throw", "sleep"];
const LOGS = ["logTrace", "logDebug", "logInfo", "logWarn", "logError"];

// The steps, on a component of storm.js.
function addSteps(prototype) {
  Object.assign(prototype, {
    // Runs the steps, then calls done; what a step throws reaches the caller, where nothing was waited for.
    work(steps, done) {
      if (steps.length === 0) return done();
      const [[name, ...rest], ...others] = steps;
      const goOn = () => this.work(others, done);
      if (name === "emit") return this.step_emit(rest[0], rest[1] ?? {}, goOn);
      if (name === "sleep") return setTimeout(goOn, rest[0] * 1000);
      if (name === "contract") return this.step_emit([["conformance", 1, this.knows]], {}, goOn);
      if (name === "conf" || name === "context") return this.step_emit([this[name][rest[0]] ?? null], {}, goOn);
      this[`step_${name}`](...rest);
      goOn();
    },
    step_emit(values, options, goOn) {
      const message = { tuple: values, stream: options.stream, ...this.extra(options) };
      if (options.task !== undefined) {
        this.emitDirect({ ...message, task: options.task });
        return goOn();
      }
      if (!options.ids) {
        this.emit(message, () => {});
        return goOn();
      }
      this.emit(message, (ids) => this.step_emit([["ids", ids]], {}, goOn));
    },
    step_log(text, level = 2) { this[LOGS[level]](text); },
    step_print(text) { console.log(text); },
    step_throw(text) { throw new Error(text); },
    initialize(conf, context, done) {
      this.conf = conf;
      this.context = context;
      this.kept = {};
      this.script = conf["conformance.script"] ?? [];
      this.on = conf["conformance.on"] ?? {};
      done();
    },
  });
}

class Bolt extends storm.BasicBolt {
  constructor() {
    super();
    this.knows = [...COMMON, "ack", "fail", "keep", "tuple"];
  }

  // Inputs are worked on one after the other: one may be waiting for its task ids.
  process(tup, done) {
    this.turn = (this.turn ?? Promise.resolve()).then(() => new Promise((next) => this.begin(tup, done, next)));
  }

  begin(tup, done, next) {
    this.current = { tup, done };
    this.open = true;
    const steps = Array.isArray(tup.values[0]) ? tup.values[0] : [];
    try {
      this.work(steps, () => {
        if (this.open) done();
        next();
      });
    } catch (error) {
      done(error);
      next();
    }
  }

  named(name) { return name === "this" ? this.current : this.kept[name]; }
  extra(options) { return { anchorTupleId: (options.anchors ?? ["this"]).map((name) => this.named(name).tup.id) }; }

  finish(name, error) {
    this.named(name).done(error);
    if (name === "this") this.open = false;
  }

  step_ack(name = "this") { this.finish(name); }
  step_fail(name = "this") { this.finish(name, new Error("failed")); }

  step_keep(name) {
    this.kept[name] = this.current;
    this.open = false;
  }

  work(steps, done) {
    if (steps[0]?.[0] !== "tuple") return super.work(steps, done);
    const { id, component, stream, task, values } = this.current.tup;
    this.step_emit([[id, component, stream, task, values.slice(1)]], {}, () => this.work(steps.slice(1), done));
  }
}

class Spout extends storm.Spout {
  constructor() {
    super();
    this.knows = [...COMMON, "heard"];
  }

  extra(options) { return { id: options.id }; }
  obey(steps, heard, done) {
    this.heard = heard;
    this.work(steps.map((step) => (step[0] === "heard" ? ["emit", [heard]] : step)), done);
  }

  nextTuple(done) { this.obey(this.script.shift() ?? [["sleep", 0.002]], ["next", ""], done); }
  ack(id, done) { this.obey(this.on.ack ?? [], ["ack", id], done); }
  fail(id, done) { this.obey(this.on.fail ?? [], ["fail", id], done); }
  activate(done) { this.obey(this.on.activate ?? [], ["activate", ""], done); }
  deactivate(done) { this.obey(this.on.deactivate ?? [], ["deactivate", ""], done); }
}

addSteps(storm.BasicBolt.prototype);
addSteps(storm.Spout.prototype);
new { bolt: Bolt, spout: Spout }[process.argv[2]]().run();
