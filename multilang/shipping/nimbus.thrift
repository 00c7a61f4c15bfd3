// The part of Storm 2.x's interface that is used here, by wire name, field number and type. Fields and methods that are
// left out are skipped on reading.

union JavaObjectArg { 1: i32 int_arg; 2: i64 long_arg; 3: string string_arg; 4: bool bool_arg; 5: binary binary_arg; 6: double double_arg; }
struct JavaObject { 1: required string full_class_name; 2: required list<JavaObjectArg> args_list; }
struct NullStruct {}
struct GlobalStreamId { 1: required string componentId; 2: required string streamId; }
union Grouping {
  1: list<string> fields;  // none at all: a global grouping
  2: NullStruct shuffle;
  3: NullStruct all;
  4: NullStruct none;
  5: NullStruct direct;
  6: JavaObject custom_object;
  7: binary custom_serialized;
  8: NullStruct local_or_shuffle;
}
struct StreamInfo { 1: required list<string> output_fields; 2: required bool direct; }
struct ShellComponent { 1: string execution_command; 2: string script; }
union ComponentObject { 1: binary serialized_java; 2: ShellComponent shell; 3: JavaObject java_object; }
struct ComponentCommon {
  1: required map<GlobalStreamId, Grouping> inputs;
  2: required map<string, StreamInfo> streams;
  3: optional i32 parallelism_hint;
  4: optional string json_conf;
}
struct SpoutSpec { 1: required ComponentObject spout_object; 2: required ComponentCommon common; }
struct Bolt { 1: required ComponentObject bolt_object; 2: required ComponentCommon common; }
struct StateSpoutSpec { 1: required ComponentObject state_spout_object; 2: required ComponentCommon common; }
struct StormTopology {
  1: required map<string, SpoutSpec> spouts;
  2: required map<string, Bolt> bolts;
  3: required map<string, StateSpoutSpec> state_spouts;
  4: optional list<binary> worker_hooks;
  5: optional list<string> dependency_jars;
  6: optional list<string> dependency_artifacts;
  7: optional string storm_version;
  8: optional string jdk_version;
}

exception AlreadyAliveException { 1: required string msg; }
exception NotAliveException { 1: required string msg; }
exception AuthorizationException { 1: required string msg; }
exception InvalidTopologyException { 1: required string msg; }
exception KeyNotFoundException { 1: required string msg; }
exception IllegalStateException { 1: required string msg; }
exception KeyAlreadyExistsException { 1: required string msg; }

struct TopologySummary {
  1: required string id;
  2: required string name;
  3: required i32 num_tasks;
  4: required i32 num_executors;
  5: required i32 num_workers;
  6: required i32 uptime_secs;
  7: required string status;
}
struct SupervisorSummary {
  1: required string host;
  2: required i32 uptime_secs;
  3: required i32 num_workers;
  4: required i32 num_used_workers;
  5: required string supervisor_id;
}
struct NimbusSummary {
  1: required string host;
  2: required i32 port;
  3: required i32 uptime_secs;
  4: required bool isLeader;
  5: required string version;
  6: optional i32 tlsPort;
}
struct ClusterSummary {
  1: required list<SupervisorSummary> supervisors;
  3: required list<TopologySummary> topologies;
  4: required list<NimbusSummary> nimbuses;
}
struct ErrorInfo { 1: required string error; 2: required i32 error_time_secs; 3: optional string host; 4: optional i32 port; }
struct BoltStats {
  1: required map<string, map<GlobalStreamId, i64>> acked;
  2: required map<string, map<GlobalStreamId, i64>> failed;
  3: optional map<string, map<GlobalStreamId, double>> process_ms_avg;
  4: required map<string, map<GlobalStreamId, i64>> executed;
  5: optional map<string, map<GlobalStreamId, double>> execute_ms_avg;
}
struct SpoutStats {
  1: required map<string, map<string, i64>> acked;
  2: required map<string, map<string, i64>> failed;
  3: optional map<string, map<string, double>> complete_ms_avg;
}
union ExecutorSpecificStats { 1: BoltStats bolt; 2: SpoutStats spout; }
struct ExecutorStats {
  1: required map<string, map<string, i64>> emitted;
  2: required map<string, map<string, i64>> transferred;
  3: required ExecutorSpecificStats specific;
}
struct ExecutorInfo { 1: required i32 task_start; 2: required i32 task_end; }
struct ExecutorSummary {
  1: required ExecutorInfo executor_info;
  2: required string component_id;
  3: required string host;
  4: required i32 port;
  5: required i32 uptime_secs;
  7: optional ExecutorStats stats;
}
struct TopologyInfo {
  1: required string id;
  2: required string name;
  3: required i32 uptime_secs;
  4: required list<ExecutorSummary> executors;
  5: required string status;
  6: required map<string, list<ErrorInfo>> errors;
}

struct KillOptions { 1: optional i32 wait_secs; }
struct RebalanceOptions { 1: optional i32 wait_secs; 2: optional i32 num_workers; 3: optional map<string, i32> num_executors; }
enum TopologyInitialStatus { ACTIVE = 1, INACTIVE = 2 }
struct Credentials { 1: required map<string, string> creds; 2: optional string topoOwner; }
struct SubmitOptions { 1: required TopologyInitialStatus initial_status; 2: optional Credentials creds; }

enum AccessControlType { OTHER = 1, USER = 2 }
struct AccessControl { 1: required AccessControlType type; 2: optional string name; 3: required i32 access; }  // 1 read, 2 write, 4 admin
struct SettableBlobMeta { 1: required list<AccessControl> acl; 2: optional i32 replication_factor; }
struct ReadableBlobMeta { 1: required SettableBlobMeta settable; 2: required i64 version; }
struct ListBlobsResult { 1: required list<string> keys; 2: required string session; }
struct BeginDownloadResult { 1: required i64 version; 2: required string session; 3: optional i64 data_size; }

service Nimbus {
  void submitTopologyWithOpts(1: string name, 2: string uploadedJarLocation, 3: string jsonConf, 4: StormTopology topology, 5: SubmitOptions options)
    throws (1: AlreadyAliveException e, 2: InvalidTopologyException ite, 3: AuthorizationException aze);
  void killTopologyWithOpts(1: string name, 2: KillOptions options) throws (1: NotAliveException e, 2: AuthorizationException aze);
  void activate(1: string name) throws (1: NotAliveException e, 2: AuthorizationException aze);
  void deactivate(1: string name) throws (1: NotAliveException e, 2: AuthorizationException aze);
  void rebalance(1: string name, 2: RebalanceOptions options)
    throws (1: NotAliveException e, 2: InvalidTopologyException ite, 3: AuthorizationException aze);
  string beginCreateBlob(1: string key, 2: SettableBlobMeta meta) throws (1: AuthorizationException aze, 2: KeyAlreadyExistsException kae);
  string beginUpdateBlob(1: string key) throws (1: AuthorizationException aze, 2: KeyNotFoundException knf);
  void uploadBlobChunk(1: string session, 2: binary chunk) throws (1: AuthorizationException aze);
  void finishBlobUpload(1: string session) throws (1: AuthorizationException aze);
  void cancelBlobUpload(1: string session) throws (1: AuthorizationException aze);
  ReadableBlobMeta getBlobMeta(1: string key) throws (1: AuthorizationException aze, 2: KeyNotFoundException knf);
  BeginDownloadResult beginBlobDownload(1: string key) throws (1: AuthorizationException aze, 2: KeyNotFoundException knf);
  binary downloadBlobChunk(1: string session) throws (1: AuthorizationException aze);
  void deleteBlob(1: string key) throws (1: AuthorizationException aze, 2: KeyNotFoundException knf, 3: IllegalStateException ise);
  ListBlobsResult listBlobs(1: string session);
  void createStateInZookeeper(1: string key);
  string beginFileUpload() throws (1: AuthorizationException aze);
  void uploadChunk(1: string location, 2: binary chunk) throws (1: AuthorizationException aze);
  void finishFileUpload(1: string location) throws (1: AuthorizationException aze);
  string getNimbusConf() throws (1: AuthorizationException aze);
  ClusterSummary getClusterInfo() throws (1: AuthorizationException aze);
  NimbusSummary getLeader() throws (1: AuthorizationException aze);
  TopologyInfo getTopologyInfo(1: string id) throws (1: NotAliveException e, 2: AuthorizationException aze);
  string getTopologyConf(1: string id) throws (1: NotAliveException e, 2: AuthorizationException aze);
  StormTopology getUserTopology(1: string id) throws (1: NotAliveException e, 2: AuthorizationException aze);
}
