// A component with a switch for each fault: `node component.js PROGRAM FAULT`, as component.py.
'use strict';
const fs = require('fs');
const path = require('path');
const {spawn} = require('child_process');

const [PROGRAM, FAULT] = process.argv.slice(2);
const [STYLE, KIND] = PROGRAM.split('-');
const PLAIN_TASK = 2 ** 32;
const KNOWS = ['emit', 'ids', 'direct', 'log', 'error', 'metric', 'conf', 'context', 'print', 'throw', 'sleep'];

const has = (...names) => names.includes(FAULT);

// What a careless copy makes of a value.
function copied(value) {
  if (Array.isArray(value)) return value.map(copied);
  if (value === null || typeof value !== 'object') return value;
  const copy = {};
  for (const key of Object.keys(value)) copy[key] = copied(value[key]);  // __proto__ is no key of it then
  return copy;
}

function altered(value) {
  if (has("texts_are_normalised") && typeof value === 'string') return value.normalize('NFC');
  if (Array.isArray(value)) return value.map(altered);
  if (value === null || typeof value !== 'object') return value;
  let pairs = Object.entries(value);
  if (has("nulls_are_left_out")) pairs = pairs.filter(([, each]) => each !== null);
  if (has("keys_in_small_letters")) pairs = pairs.map(([key, each]) => [key.toLowerCase(), each]);
  return Object.fromEntries(pairs.map(([key, each]) => [key, altered(each)]));
}

class Component {
  constructor() {
    this.due = [];
    this.inputs = 0;
    this.work = Promise.resolve();
  }

  run() {
    let held = Buffer.alloc(0);
    if (has("ignores_sigterm")) process.on('SIGTERM', () => {});
    process.stdin.on('data', (data) => {
      if (has("expects_a_message_in_a_read") && !data.toString().endsWith('\nend\n')) process.exit(1);
      if (has("splits_letters")) data = Buffer.from(data.toString());
      held = Buffer.concat([held, data]);
      for (let stop; (stop = held.indexOf('\nend\n')) >= 0; held = held.subarray(stop + 5)) {
        let text = held.subarray(0, stop).toString(has("reads_latin1") ? 'latin1' : 'utf8');
        if (has("one_line_a_message") && text.includes('\n')) process.exit(1);
        if (has("wants_no_blanks") && text.includes('": ')) process.exit(1);
        if (has("dies_of_escapes") && text.includes('\\u')) process.exit(1);
        if (has("no_other_letters") && /[^\x00-\x7f]/.test(text)) process.exit(1);
        if (has("small_buffer") && text.length > 60000) process.exit(1);
        this.read(JSON.parse(text));
        if (has("drops_what_a_read_has_more") || has("reads_before_it_looks")) {
          held = has("drops_what_a_read_has_more") ? Buffer.alloc(0) : held.subarray(stop + 5);
          break;
        }
      }
    });
    process.stdin.on('end', () => {
      if (has("outlives_its_input")) return setInterval(() => {}, 1000);
      process.exit(has("ends_with_status_1") ? 1 : 0);
    });
    process.stdout.on('error', () => process.exit(1));
  }

  read(message) {
    if (Array.isArray(message)) return this.takeIds(message);
    if ('pidDir' in message) return this.shakeHands(message);
    return this.handle(message);
  }

  write(text) {
    if (has("cuts_messages") && text.length > 65536) text = text.slice(0, 65531) + '\nend\n';
    if (has("crlf")) text = text.replaceAll('\n', '\r\n');
    if (has("no_line_feed_behind_end")) text = text.replaceAll('\nend\n', '\nend');
    if (has("byte_order_mark")) text = '\ufeff' + text;
    process.stdout.write(text, has("writes_latin1") && !/[^\x00-\xff]/.test(text) ? 'latin1' : 'utf8');
  }

  send(message) {
    if (has("command_is_op") && 'command' in message) message = {op: message.command, ...message, command: undefined};
    if (has("second_object_in_a_message") && ['ack', 'sync'].includes(message.command)) {
      this.write('{"command": "log", "msg": "next"}\n');
    }
    this.write(JSON.stringify(message).replaceAll('\x7f', '\\u007f') + '\nend\n');
  }

  shakeHands(setup) {
    this.conf = setup.conf;
    this.context = setup.context;
    if (has("banner")) console.log('MyComponent 2.0');
    if (has("wants_pid_dir_first") && Object.keys(setup)[0] !== 'pidDir') process.exit(1);
    if (has("strict_setup") && Object.keys(setup).length !== 3) process.exit(1);
    if (has("wants_component_id")) this.context.componentid.toString();
    if (has("few_tasks") && Object.keys(this.context['task->component']).length > 1000) process.exit(1);
    this.file = path.join(setup.pidDir, String(process.pid) + (has("pid_file_suffix") ? '.pid' : ''));
    if (!has("no_pid_file")) fs.writeFileSync(this.file, has("pid_file_has_text") ? 'x' : '');
    if (has("log_before_the_pid")) this.send({command: 'log', msg: 'starting'});
    this.send({pid: has("pid_as_text") ? String(process.pid) : process.pid});
    if (has("pid_twice")) this.send({pid: process.pid});
    if (has("helper_at_start")) spawn('sleep', ['900'], {detached: true, stdio: 'ignore'}).unref();
    this.prepare();
  }

  begin() {
    this.inputs += 1;
    if (has("prints")) console.log('working');
    if (has("prints_a_number")) this.write('42\nend\n');
    if (has("empty_message")) this.write('end\n');
    if (has("log_is_an_object")) this.send({command: 'log', msg: {text: 'working'}});
    if (has("level_in_words")) this.send({command: 'log', msg: 'working', level: 'info'});
    if (has("no_command")) this.send({working: true});
    if (has("unknown_command")) this.send({command: 'progress'});
    if (has("pid_file_goes") && fs.existsSync(this.file)) fs.unlinkSync(this.file);
    if (has("silent_after_3000") && this.inputs > 3000) this.handle = () => {};
  }

  takeIds(ids) {
    if (has("dies_of_task_ids")) ids.tuple.push(1);
    if (has("syncs_to_task_ids")) this.send({command: 'sync'});
    if (has("wants_a_task") && !ids.length) return;
    const next = has("last_ids_first") ? this.due.pop() : this.due.shift();
    if (next) next(has("one_task_id") ? ids.slice(0, 1) : ids);
  }

  inTurn(work) {
    this.work = this.work.then(work).catch((error) => {
      console.error(error.stack);
      process.exit(1);
    });
  }

  async steps(steps) {
    for (const [name, ...rest] of steps) await this[`do_${name}`](...rest);
  }

  async put(values, options, message) {
    if (has("doubles_of_6_digits")) {
      values = values.map((each) => (typeof each === 'number' && !Number.isInteger(each) ? Number(each.toPrecision(6)) : each));
    }
    if (has("copies_keys")) values = copied(values);
    if (has("lists_in_lists_are_one")) values = values.flat();
    if (has("drops_empty_texts")) values = values.filter((each) => each !== '');
    if (options.stream !== undefined && !has("one_stream")) message.stream = options.stream;
    if (has("empty_stream") && options.stream === undefined) message.stream = '';
    if (options.task !== undefined) {
      message.task = options.task + PLAIN_TASK;
      if (has("task_as_text")) message.task = String(options.task);
      if (has("small_task")) message.task = options.task;
      if (has("no_task")) delete message.task;
    } else if (!options.ids && STYLE === 'contract') {
      if (has("asks_and_forgets", "last_ids_first")) this.due.push(() => {});
      else message.need_task_ids = false;
    }
    if (has("tuple_is_text")) values = String(values);
    if (has("tuple_is_null")) values = null;
    if (has("cuts_texts")) values = values.map((value) => (typeof value === 'string' ? value.slice(0, 70000) : value));
    message = {command: 'emit', tuple: altered(values), ...message};
    if (has("emit_without_values")) delete message.tuple;
    const ids = options.ids && new Promise((resolve) => this.due.push(resolve));
    this.send(message);
    if (ids) await this.do_emit([['ids', await ids]]);
  }

  do_contract() { return this.do_emit([['conformance', 1, this.knows]]); }
  do_conf(key) { return this.do_emit([this.conf[key] ?? null]); }
  do_context(key) { return this.do_emit([this.context[key] ?? null]); }
  do_log(msg, level = 2) {
    this.send({command: 'log', msg: has("logs_a_line") ? msg.split('\n')[0] : msg, level: has("one_level") ? 2 : level});
  }
  do_error(msg) { this.send({command: 'error', msg: has("errors_are_a_line") ? msg.split('\n')[0] : msg}); }
  do_metric(name, params) {
    this.send({command: 'metrics', name, params: has("metrics_are_texts") ? String(params) : params});
  }
  do_print(text) { has("prints_to_stdout") ? console.log(text) : console.error(text); }
  do_throw(text) { throw new Error(text); }
  do_sleep(seconds) { return new Promise((resolve) => setTimeout(resolve, seconds * 1000)); }
}

class Bolt extends Component {
  knows = [...KNOWS, 'ack', 'fail', 'keep', 'tuple'];
  kept = {};
  tuples = 0;
  beats = 0;

  prepare() {}

  handle(message) {
    if (has("negative_tasks_are_heartbeats") ? message.task === -1 : message.stream === '__heartbeat') {
      return this.heartbeat(message);
    }
    this.begin();
    return this.inTurn(() => this.come(message));
  }

  heartbeat(message) {
    this.beats += 1;
    if (has("no_sync") || (has("every_other_heartbeat") && this.beats % 2 === 0)) return;
    if (has("heartbeats_have_a_component") && !message.comp) return;
    if (has("heartbeats_have_no_component") && message.comp) return;
    if (has("few_heartbeats") && this.beats > 60) return;
    if (has("no_sync_behind_a_tuple") && this.tuples) return;
    this.send({command: 'sync'});
    if (has("two_syncs")) this.send({command: 'sync'});
    if (has("acks_heartbeats")) this.send({command: 'ack', id: message.id});
  }

  async come(tup) {
    this.tuples += 1;
    if (tup.stream === '__tick') {
      if (has("dies_of_a_tick")) tup.tuple[0].split(' ');
      if (has("never_acks_a_tick")) return;
    }
    if (has("ids_are_doubles")) tup.id = String(Number(tup.id));
    if (has("dies_of_a_tuple")) process.exit(1);
    if (has("hangs_at_a_tuple")) for (;;);
    if (has("dies_of_the_30th_tuple") && this.tuples === 30) process.exit(1);
    this.current = tup;
    this.isOpen = true;
    if (has("acks_first")) this.send({command: 'ack', id: tup.id});
    const first = tup.tuple[0];
    if (STYLE === 'ordinary') {
      if (typeof first === 'string') for (const word of first.split(' ')) await this.do_emit([word]);
    } else {
      try {
        await this.steps(Array.isArray(first) ? first : []);
      } catch (error) {
        if (has("swallows_exceptions")) return;
        this.send({command: 'error', msg: String(error.stack)});
        if (has("acks_what_threw")) this.finish('ack', 'this');
        if (this.isOpen || has("fails_what_it_acked")) this.finish('fail', 'this');
      }
    }
    if (this.isOpen && !has("acks_first")) this.finish('ack', 'this');
    this.previous = tup;
  }

  named(name) { return name === 'this' ? this.current : this.kept[name]; }

  do_emit(values, options = {}) {
    let anchors = (options.anchors ?? ['this']).map((name) => this.named(name).id);
    if (has("no_anchors")) anchors = [];
    if (has("anchors_are_numbers")) anchors = anchors.map(Number);
    if (has("anchors_are_indexes")) anchors = Object.keys(anchors);
    if (has("anchor_without_a_list") && anchors.length === 1) anchors = anchors[0];
    if (has("anchor_twice")) anchors = [...anchors, ...anchors];
    if (has("anchors_of_the_previous") && this.previous) anchors = [this.previous.id];
    return this.put(values, options, {anchors});
  }

  finish(command, name) {
    let {id} = this.named(name);
    if (name === 'this') this.isOpen = false;
    else delete this.kept[name];
    if (has("never_acks")) return;
    if (has("fails_are_acks")) command = 'ack';
    if (has("acks_are_fails")) command = 'fail';
    if (has("acks_numbers")) id = Number(id);
    if (has("acks_without_id")) id = undefined;
    this.send({command, id});
    if (has("acks_twice")) this.send({command, id});
    if (has("acks_and_fails")) this.send({command: 'fail', id});
    if (has("emits_behind_the_ack")) this.send({command: 'emit', tuple: ['late'], anchors: [id]});
  }

  do_ack(name = 'this') { this.finish('ack', name); }
  do_fail(name = 'this') { this.finish('fail', name); }

  do_keep(name) {
    this.kept[name] = this.current;
    this.isOpen = false;
  }

  do_tuple() {
    const {id, comp, stream, task, tuple} = this.current;
    return this.do_emit([[id, has("no_component") ? null : comp, stream, task, tuple.slice(1)]]);
  }
}

class Spout extends Component {
  knows = [...KNOWS, 'heard'];
  pending = new Map();
  number = 0;
  nexts = 0;
  acks = 0;

  prepare() {
    this.script = this.conf['conformance.script'] ?? [];
    this.on = this.conf['conformance.on'] ?? {};
  }

  handle(message) {
    if (this.due.length > 0 && !has("keeps_acks_while_waiting")) this.obey(message);
    else this.inTurn(() => this.obey(message));
  }

  async obey({command, id = null}) {
    this.begin();
    if (has("acks_are_fails") && command === 'ack') command = 'fail';
    if (command === 'next') this.nexts += 1;
    if (['activate', 'deactivate'].includes(command)) this.active = command === 'activate';
    if (has("begins_anew_when_activated") && command === 'activate') this.script = [...(this.conf['conformance.script'] ?? [])];
    if (has("sync_first")) this.send({command: 'sync'});
    if (has("dies_on_" + command)) process.exit(1);
    if (command === 'ack') this.acks += 1;
    if (has("dies_on_a_third_ack") && this.acks === 3) process.exit(1);
    if (has("dies_on_the_70th_next") && this.nexts === 70) process.exit(1);
    if (has("stderr_of_100_KB")) fs.writeSync(2, 'e'.repeat(100000));
    this.heard = [command, id];
    if (STYLE === 'contract') {
      const idle = [['sleep', has("never_sleeps") ? 0 : 0.002]];
      const steps = command === 'next' ? this.script.shift() ?? idle : this.on[command] ?? [];
      if (has("silent_behind_an_exception") && steps.some(([name]) => name === 'throw')) {
        return this.send({command: 'error', msg: steps.find(([name]) => name === 'throw')[1]});
      }
      await this.steps(steps);
    } else await this['on_' + command](id);
    if (has("silent_on_" + command) || has("sync_first")) return;
    if (has("silent_while_inactive") && !this.active && ['ack', 'fail'].includes(command)) return;
    this.send({command: 'sync'});
    if (has("two_syncs") || has("two_syncs_on_" + command)) this.send({command: 'sync'});
    if (has("emits_behind_the_sync") && command === 'next' && this.nexts % 3 === 0) {
      this.send({command: 'emit', tuple: ['late'], need_task_ids: false});
    }
  }

  async on_next() {
    if (this.number >= 60) return this.do_sleep(has("never_sleeps") ? 0 : 0.002);
    this.number += 1;
    return this.repeat(this.number);
  }

  repeat(id) {
    this.pending.set(id, id);
    return this.put([`sentence ${id}`], {}, {id: has("id_is_an_object") ? {id} : id});
  }

  on_ack(id) {
    if (!this.pending.delete(id?.id ?? id)) throw new Error(`${id} is not under way`);
  }

  on_fail(id) {
    id = id?.id ?? id;
    if (!this.pending.has(id)) throw new Error(`${id} is not under way`);
    return this.repeat(id);
  }

  on_activate() {}
  on_deactivate() {}

  do_emit(values, options = {}) {
    let {id} = options;
    if (has("no_ids_that_are_false")) id = id || undefined;
    if (has("ids_have_a_prefix") && id !== undefined) id = `id ${id}`;
    if (has("ids_are_texts") && id !== undefined) id = String(id);
    if (has("never_reliable")) id = undefined;
    return this.put(values, options, {id});
  }

  do_heard() { return this.do_emit([this.heard]); }
}

new {bolt: Bolt, spout: Spout}[KIND]().run();
