// A step in another language: takes (request id, text), gives (request id, word, length), as a bolt of the multi-lang protocol.
"use strict";
const send = (message) => process.stdout.write(JSON.stringify(message) + "\nend\n");

function words(message) {
  const [request, text] = message.tuple;
  if (text === "die") process.exit(3);
  if (text === "garbage") return process.stdout.write("no JSON\nend\n");
  if (text === "fail") return send({ command: "fail", id: message.id });
  for (const word of text.split(" ").filter((each) => each)) {
    send({ command: "emit", anchors: [message.id], tuple: [request, word, word.length], need_task_ids: word === "ask" });
  }
  // Done a turn of the event loop later, as what waits for something else is.
  setImmediate(() => send({ command: "ack", id: message.id }));
}

function handle(message) {
  if (Array.isArray(message)) send({ command: "log", msg: `went to ${message.length}`, level: 2 });
  else if ("pidDir" in message) send({ pid: process.pid });
  else if (message.stream === "__heartbeat") send({ command: "sync" });
  else words(message);
}

let lines = [];
require("readline")
  .createInterface({ input: process.stdin, crlfDelay: Infinity })
  .on("line", (line) => {
    if (line !== "end") return lines.push(line);
    const text = lines.join("\n");
    lines = [];
    handle(JSON.parse(text));
  });
