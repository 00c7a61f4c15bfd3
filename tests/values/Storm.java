import java.io.OutputStream;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.storm.multilang.BoltMsg;
import org.apache.storm.multilang.JsonSerializer;
import org.apache.storm.multilang.NoOutputException;
import org.apache.storm.multilang.ShellMsg;
import org.apache.storm.multilang.SpoutMsg;
import org.apache.storm.serialization.KryoValuesDeserializer;
import org.apache.storm.serialization.KryoValuesSerializer;
import org.apache.storm.utils.TupleUtils;
import org.apache.storm.utils.Utils;

/**
 * Storm's end of a component's pipe, with Storm's own classes and without a cluster. The arguments are topology.kryo.register.
 *
 * An emit comes back as two tuples: as a bolt of the same worker gets it (stream "near"), and by way of Kryo, as one of
 * another worker does ("far"). Their task is where a fields grouping on all values places the tuple among TASKS tasks. The id
 * of a spout's emit comes back as an ack before that. What a log, an error or a metric says comes back as a tuple of one value.
 */
public class Storm {
    static final int TASKS = Integer.MAX_VALUE;

    public static void main(String[] registered) throws Exception {
        OutputStream out = System.out;
        System.setOut(System.err);
        Map<String, Object> conf = Utils.readDefaultConfig();
        conf.put("topology.kryo.register", Arrays.asList(registered));
        KryoValuesSerializer there = new KryoValuesSerializer(conf);
        KryoValuesDeserializer back = new KryoValuesDeserializer(conf);
        JsonSerializer wire = new JsonSerializer();
        wire.initialize(out, System.in);
        while (true) {
            ShellMsg message;
            try {
                message = wire.readShellMsg();
            } catch (NoOutputException end) {
                return;
            }
            switch (message.getCommand()) {
                case "emit":
                    if (message.getId() != null) {
                        SpoutMsg ack = new SpoutMsg();
                        ack.setCommand("ack");
                        ack.setId(message.getId());
                        wire.writeSpoutMsg(ack);
                    }
                    tuple(wire, "near", message.getTuple());
                    tuple(wire, "far", back.deserialize(there.serialize(message.getTuple())));
                    break;
                case "metrics":
                    tuple(wire, message.getMetricName(), Collections.singletonList(message.getMetricParams()));
                    break;
                default:
                    tuple(wire, message.getCommand(), Collections.<Object>singletonList(message.getMsg()));
            }
        }
    }

    static void tuple(JsonSerializer wire, String stream, List<Object> values) throws Exception {
        BoltMsg tuple = new BoltMsg();
        tuple.setId("1");
        tuple.setComp("storm");
        tuple.setStream(stream);
        tuple.setTask(TupleUtils.chooseTaskIndex(values, TASKS));
        tuple.setTuple(values);
        wire.writeBoltMsg(tuple);
    }
}
