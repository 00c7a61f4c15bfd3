// Splits sentences into words under Storm's multi-lang protocol, with plain Node and no library.
// A message is a JSON document followed by a line "end", in both directions.
"use strict";
const fs = require("fs");
const path = require("path");

const send = (message) => process.stdout.write(JSON.stringify(message) + "\nend\n");

function handle(message) {
  if (Array.isArray(message)) return; // task ids of an emit; we don't ask for any
  if ("pidDir" in message) {
    if (message.pidDir) fs.writeFileSync(path.join(message.pidDir, String(process.pid)), "");
    send({ pid: process.pid });
  } else if (message.stream === "__heartbeat") {
    send({ command: "sync" });
  } else {
    for (const word of message.tuple[0].toLowerCase().match(/[\p{L}\p{N}]+(?:['’]\p{L}+)*/gu) ?? []) {
      send({ command: "emit", anchors: [message.id], tuple: [word], need_task_ids: false });
    }
    send({ command: "ack", id: message.id });
  }
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
