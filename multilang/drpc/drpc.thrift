// Storm's DRPC interface, as multilang.drpc.thrift speaks it and as any Thrift library can read it: framed transport, binary
// protocol. Clients ask at drpc.port (3772), topologies at drpc.invocations.port (3773).

enum DRPCExceptionType { INTERNAL_ERROR, SERVER_SHUTDOWN, SERVER_TIMEOUT, FAILED_REQUEST }
exception DRPCExecutionException { 1: required string msg; 2: optional DRPCExceptionType type; }
exception AuthorizationException { 1: required string msg; }
struct DRPCRequest { 1: required string func_args; 2: required string request_id; }

service DistributedRPC {
  string execute(1: string functionName, 2: string funcArgs)
    throws (1: DRPCExecutionException e, 2: AuthorizationException aze);
}

service DistributedRPCInvocations {
  void result(1: string id, 2: string result) throws (1: AuthorizationException aze);
  DRPCRequest fetchRequest(1: string functionName) throws (1: AuthorizationException aze);
  void failRequest(1: string id) throws (1: AuthorizationException aze);
  void failRequestV2(1: string id, 2: DRPCExecutionException e) throws (1: AuthorizationException aze);
}
