import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import org.apache.storm.coordination.CoordinatedBolt;
import org.apache.storm.coordination.CoordinatedBolt.SourceArgs;
import org.apache.storm.testing.IdentityBolt;
import org.apache.storm.topology.BasicBoltExecutor;
import org.apache.storm.tuple.Fields;
import org.apache.storm.utils.Utils;

/**
 * Storm's own CoordinatedBolt around a bolt that hands on what it gets: for each argument a line, the bolt serialized as
 * Thrift carries it, in base 64. An argument is "none", or the step before, all of whose tasks report.
 */
public class Steps {
    public static void main(String[] arguments) {
        for (String source : arguments) {
            Map<String, SourceArgs> sources = new TreeMap<>();
            if (!source.equals("none")) {
                sources.put(source, SourceArgs.all());
            }
            IdentityBolt same = new IdentityBolt(new Fields("id", "value"));
            byte[] bolt = Utils.javaSerialize(new CoordinatedBolt(new BasicBoltExecutor(same), sources, null));
            System.out.println(Base64.getEncoder().encodeToString(bolt));
        }
    }
}
