#!/bin/sh
# An ordinary bolt in sh, which acks all that it is given: `sh bolt.sh`, `sh bolt.sh broken` for one that acks no tick.
message() {
  text=
  while IFS= read -r line; do
    [ "$line" = end ] && return 0
    text=$text$line
  done
  exit 0
}
entry() { printf '%s' "$text" | sed -n "s/.*\"$1\": *\"\(\([^\"\\\\]\|\\\\.\)*\)\".*/\1/p"; }

message
: > "$(entry pidDir | sed 's,\\/,/,g')/$$"
printf '{"pid": %d}\nend\n' $$
while :; do
  message
  case $text in
    \[*) continue ;;
  esac
  case $(entry stream) in
    __heartbeat) printf '{"command": "sync"}\nend\n' ;;
    __tick) [ "$1" = broken ] && exit 1; printf '{"command": "ack", "id": "%s"}\nend\n' "$(entry id)" ;;
    *) printf '{"command": "ack", "id": "%s"}\nend\n' "$(entry id)" ;;
  esac
done
