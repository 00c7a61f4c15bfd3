"""The one way in which the servers of this library listen: bounded connections, requests over HTTP, checks of who asks.

A connection is *anonymous* until it has shown what admits it: a secret, a token, a whole message. Whoever can reach a port
can open connections, so these are the laws that keep others from being shut out by them:

- The anonymous connections are bounded. For one more, one of them is ended: one that has sent nothing before one that has,
  the oldest first.
- An admitted connection gives way to nobody while something is done for it. While it is idle it does where there is no
  anonymous one, the longest idle first.
- Nothing waits without an end: for a head, a body, a client that does not read its answer.
- A head of a request is bounded, and so is each body before any of it is kept.
- Secrets are compared in a time that does not depend on how much of them was right.
- What a page of another site causes in a browser is refused, by ``Origin``, ``Sec-Fetch-Site`` and ``Host``.

A connection that has sent nothing costs a place in a list and no task, so that many of them are accepted in one turn of the
event loop; of those that have sent something there is one in a turn, and what came on the others is read in between: so
whoever sends at once is admitted before many others have come, however fast they connect.
"""
