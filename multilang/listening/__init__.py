"""Servers with bounded connections, requests over HTTP, and the checks of a request.

A connection is *anonymous* until it has sent what admits it: a secret, a token, a whole message. Whoever can reach a port can
open connections, so these laws prevent anonymous connections from shutting out the others:

- The anonymous connections are bounded. For one more, one of them is ended: one that has sent nothing before one that has,
  the oldest first.
- A busy admitted connection is never ended for another one. An idle one is, where there is no anonymous one, the longest
  idle first.
- Each wait has a timeout: for a head, a body, a client that does not read its answer.
- A head of a request is bounded, and so is each body before any of it is stored.
- Secrets are compared in a time that does not depend on how much of them was right.
- What a page of another site causes in a browser is refused, by ``Origin``, ``Sec-Fetch-Site`` and ``Host``.

A connection that has sent nothing costs a place in a list and no task, so that many of them are accepted in one turn of the
event loop; of those that have sent something there is one in a turn, and the others are read in between: so a client that
sends at once is admitted before many others have connected.
"""
