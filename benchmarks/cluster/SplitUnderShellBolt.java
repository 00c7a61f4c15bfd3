import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.generated.KillOptions;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.BasicOutputCollector;
import org.apache.storm.topology.IRichBolt;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.TopologyBuilder;
import org.apache.storm.topology.base.BaseBasicBolt;
import org.apache.storm.topology.base.BaseRichSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.tuple.Values;

/**
 * The word count's split bolt as a child of Storm's own ShellBolt, everything else being Java, in one LocalCluster:
 * SentencesSpout (reliable) -> ShellBolt(the child) -> a bolt that counts words.
 *
 * <p>Arguments: rounds, seconds to warm up, seconds to measure, a file with a line for each child (name, PYTHONPATH, words
 * of the command, divided by tabs), and one with sentences of ten words. Prints a line for each child and round: its name,
 * and how many sentences were acked in a second.
 */
public class SplitUnderShellBolt {
    static final int PENDING = 1000;
    static final LongAdder ACKED = new LongAdder();
    static final LongAdder FAILED = new LongAdder();
    static final LongAdder WORDS = new LongAdder();

    public static class Sentences extends BaseRichSpout {
        private final List<String> sentences;
        private SpoutOutputCollector collector;
        private long emitted;

        Sentences(List<String> sentences) {
            this.sentences = new ArrayList<>(sentences);
        }

        @Override
        public void open(Map<String, Object> conf, TopologyContext context, SpoutOutputCollector collector) {
            this.collector = collector;
        }

        @Override
        public void nextTuple() {
            collector.emit(new Values(sentences.get((int) (emitted % sentences.size()))), emitted++);
        }

        @Override
        public void ack(Object id) {
            ACKED.increment();
        }

        @Override
        public void fail(Object id) {
            FAILED.increment();
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("sentence"));
        }
    }

    public static class Split extends ShellBolt implements IRichBolt {
        Split(String... command) {
            super(command);
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {
            declarer.declare(new Fields("word"));
        }

        @Override
        public Map<String, Object> getComponentConfiguration() {
            return null;
        }
    }

    public static class Words extends BaseBasicBolt {
        @Override
        public void execute(Tuple tuple, BasicOutputCollector collector) {
            WORDS.increment();
        }

        @Override
        public void declareOutputFields(OutputFieldsDeclarer declarer) {}
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[0]);
        double warmUp = Double.parseDouble(arguments[1]);
        double seconds = Double.parseDouble(arguments[2]);
        List<String> children = Files.readAllLines(Path.of(arguments[3]));
        List<String> sentences = Files.readAllLines(Path.of(arguments[4]));
        Map<String, Object> daemons = new HashMap<>();
        daemons.put("nimbus.monitor.freq.secs", 1);
        daemons.put("supervisor.monitor.frequency.secs", 1);
        daemons.put("task.heartbeat.frequency.secs", 1);
        try (LocalCluster cluster = new LocalCluster.Builder().withDaemonConf(daemons).build()) {
            for (int round = 0; round < rounds; round++) {
                for (int n = 0; n < children.size(); n++) {
                    String child = children.get(round % 2 == 0 ? n : children.size() - 1 - n);
                    String[] words = child.split("\t");
                    double rate = measure(cluster, sentences, words, warmUp, seconds);
                    System.out.println(words[0] + "\t" + rate);
                    System.out.flush();
                }
            }
        }
        System.exit(0);
    }

    private static double measure(
        LocalCluster cluster, List<String> sentences, String[] child, double warmUp, double seconds) throws Exception {
        Split split = new Split(Arrays.copyOfRange(child, 2, child.length));
        if (!child[1].isEmpty()) {
            split.setEnv(new HashMap<>(Map.of("PYTHONPATH", child[1])));
        }
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("sentences", new Sentences(sentences));
        builder.setBolt("split", split).shuffleGrouping("sentences");
        builder.setBolt("words", new Words()).shuffleGrouping("split");
        Config conf = new Config();
        conf.setMaxSpoutPending(PENDING);
        conf.setNumAckers(1);
        ACKED.reset();
        FAILED.reset();
        WORDS.reset();
        cluster.submitTopology("split", conf, builder.createTopology());
        long deadline = System.nanoTime() + 60_000_000_000L;
        while (ACKED.sum() == 0) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(child[0] + " acked nothing in a minute");
            }
            Thread.sleep(50);
        }
        Thread.sleep((long) (1000 * warmUp));
        long begin = System.nanoTime();
        long ackedBefore = ACKED.sum();
        long wordsBefore = WORDS.sum();
        Thread.sleep((long) (1000 * seconds));
        long acked = ACKED.sum() - ackedBefore;
        long words = WORDS.sum() - wordsBefore;
        double rate = acked / ((System.nanoTime() - begin) / 1e9);
        // What is acked lags behind what is counted by no more than what may be under way.
        if (FAILED.sum() > 0 || Math.abs(words - 10 * acked) > 10 * 2 * PENDING) {
            throw new IllegalStateException(child[0] + ": " + FAILED.sum() + " failed, " + words + " words of " + acked);
        }
        KillOptions now = new KillOptions();
        now.set_wait_secs(0);
        cluster.killTopologyWithOpts("split", now);
        while (cluster.getClusterInfo().get_topologies_size() > 0
            || ProcessHandle.current().children().anyMatch(ProcessHandle::isAlive)) {
            Thread.sleep(100);
        }
        return rate;
    }
}
