import java.util.Map;
import org.apache.storm.daemon.drpc.DRPC;
import org.apache.storm.daemon.drpc.DRPCThrift;
import org.apache.storm.generated.DistributedRPC;
import org.apache.storm.generated.DistributedRPCInvocations;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.security.auth.ThriftConnectionType;
import org.apache.storm.security.auth.ThriftServer;
import org.apache.storm.utils.ConfigUtils;

/**
 * Storm's own DRPC server, without HTTP. The program of a release that starts it, DRPCServer, is in none of the artifacts
 * on Maven Central; the server itself is.
 */
public class Drpc {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> conf = ConfigUtils.readStormConfig();
        try (DRPC requests = new DRPC(new StormMetricsRegistry(), conf)) {
            DRPCThrift handler = new DRPCThrift(requests);
            ThriftServer topologies = new ThriftServer(
                conf, new DistributedRPCInvocations.Processor<>(handler), ThriftConnectionType.DRPC_INVOCATIONS);
            Thread background = new Thread(topologies::serve, "invocations");
            background.setDaemon(true);
            background.start();
            new ThriftServer(conf, new DistributedRPC.Processor<>(handler), ThriftConnectionType.DRPC).serve();
        }
    }
}
