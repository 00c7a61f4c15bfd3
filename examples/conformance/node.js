// The conformance component in plain Node, without any library: `node node.js bolt`, `node node.js spout`.
// It follows the contract in docs/conformance.md.
//
//     multilang conformance bolt -- node examples/conformance/node.js bolt
"use strict";
const fs = require("fs");
const path = require("path");

const OFFSET = 2 ** 32; // Storm 2.6.0 to 2.8.8 halts on a small task id, and narrows this one
const COMMON = ["emit", "ids", "direct", "log", "error", "metric", "conf", "context", "print", "throw", "sleep"];

class Component {
  constructor() {
    this.idsDue = []; // for each emit that waits for its task ids: whom to tell
    this.work = Promise.resolve(); // inputs are worked on one after the other
  }

  // ---- the wire ----

  run() {
    let held = Buffer.alloc(0);
    process.stdin.on("data", (data) => {
      // Bytes, not text: a read may end inside of a letter.
      held = Buffer.concat([held, data]);
      for (let stop; (stop = held.indexOf("\nend\n")) >= 0; held = held.subarray(stop + 5)) {
        this.read(JSON.parse(held.subarray(0, stop).toString("utf8")));
      }
    });
    process.stdin.on("end", () => process.exit(0));
    process.stdout.on("error", () => process.exit(1)); // the parent has closed its end
  }

  read(message) {
    if (Array.isArray(message)) this.idsDue.shift()(message);
    else if ("pidDir" in message) this.shakeHands(message);
    else this.handle(message);
  }

  shakeHands(setup) {
    this.conf = setup.conf;
    this.context = setup.context;
    fs.writeFileSync(path.join(setup.pidDir, String(process.pid)), "");
    this.send({ pid: process.pid });
    this.prepare();
  }

  prepare() {}

  send(message) {
    // Raw, Storm drops U+007F from a text that also holds an escape.
    process.stdout.write(JSON.stringify(message).replaceAll("\x7f", "\\u007f") + "\nend\n");
  }

  inTurn(work) {
    this.work = this.work.then(work).catch((error) => {
      this.send({ command: "error", msg: String(error.stack) });
      process.exitCode = 1;
      process.stdout.write("", () => process.exit(1));
    });
  }

  // ---- the steps ----

  async run_steps(steps) {
    for (const [name, ...rest] of steps) await this[`do_${name}`](...rest);
  }

  async send_emit(values, options, message) {
    if (options.stream !== undefined) message.stream = options.stream;
    if (options.task !== undefined) message.task = options.task + OFFSET;
    if (options.ids) {
      const ids = new Promise((resolve) => this.idsDue.push(resolve));
      this.send({ command: "emit", tuple: values, ...message });
      await this.do_emit([["ids", await ids]]);
    } else {
      if (options.task === undefined) message.need_task_ids = false;
      this.send({ command: "emit", tuple: values, ...message });
    }
  }

  do_contract() { return this.do_emit([["conformance", 1, this.knows]]); }
  do_conf(key) { return this.do_emit([this.conf[key] ?? null]); }
  do_context(key) { return this.do_emit([this.context[key] ?? null]); }
  do_log(text, level = 2) { this.send({ command: "log", msg: text, level }); }
  do_error(text) { this.send({ command: "error", msg: text }); }
  do_metric(name, params) { this.send({ command: "metrics", name, params }); }
  do_print(text) { console.error(text); } // standard output is the protocol's
  do_throw(text) { throw new Error(text); }
  do_sleep(seconds) { return new Promise((resolve) => setTimeout(resolve, seconds * 1000)); }
}

class Bolt extends Component {
  knows = [...COMMON, "ack", "fail", "keep", "tuple"];
  kept = {};

  handle(message) {
    if (message.stream === "__heartbeat" && message.task === -1) this.send({ command: "sync" });
    else if ("tuple" in message) this.inTurn(() => this.process(message));
  }

  async process(tup) {
    this.current = tup;
    this.isOpen = true;
    const steps = tup.tuple[0];
    try {
      await this.run_steps(Array.isArray(steps) ? steps : []);
    } catch (error) {
      this.send({ command: "error", msg: String(error.stack) });
      if (this.isOpen) this.do_fail();
    }
    if (this.isOpen) this.do_ack();
  }

  named(name) { return name === "this" ? this.current : this.kept[name]; }

  do_emit(values, options = {}) {
    const anchors = (options.anchors ?? ["this"]).map((name) => this.named(name).id);
    return this.send_emit(values, options, { anchors });
  }

  finish(command, name) {
    this.send({ command, id: this.named(name).id });
    if (name === "this") this.isOpen = false;
    else delete this.kept[name];
  }

  do_ack(name = "this") { this.finish("ack", name); }
  do_fail(name = "this") { this.finish("fail", name); }

  do_keep(name) {
    this.kept[name] = this.current;
    this.isOpen = false;
  }

  do_tuple() {
    const { id, comp, stream, task, tuple } = this.current;
    return this.do_emit([[id, comp, stream, task, tuple.slice(1)]]);
  }
}

class Spout extends Component {
  knows = [...COMMON, "heard"];

  prepare() {
    this.script = this.conf["conformance.script"] ?? [];
    this.on = this.conf["conformance.on"] ?? {};
  }

  handle(message) {
    // An ack that comes while task ids are waited for is answered at once: without ackers Storm waits for that.
    if (this.idsDue.length > 0) this.obey(message);
    else this.inTurn(() => this.obey(message));
  }

  async obey({ command, id = null }) {
    const steps = command === "next" ? this.script.shift() ?? [["sleep", 0.002]] : this.on[command] ?? [];
    this.heard = [command, id];
    await this.run_steps(steps);
    this.send({ command: "sync" });
  }

  do_emit(values, options = {}) {
    return this.send_emit(values, options, "id" in options ? { id: options.id } : {});
  }

  do_heard() { return this.do_emit([this.heard]); }
}

new { bolt: Bolt, spout: Spout }[process.argv[2]]().run();
