import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.storm.security.auth.ReqContext;
import org.apache.storm.security.auth.SimpleTransportPlugin;
import org.apache.storm.security.auth.ThriftConnectionType;
import org.apache.storm.thrift.TProcessor;
import org.apache.storm.thrift.protocol.TBinaryProtocol;
import org.apache.storm.thrift.server.THsHaServer;
import org.apache.storm.thrift.server.TServer;
import org.apache.storm.thrift.transport.TNonblockingServerSocket;
import org.apache.storm.thrift.transport.TTransportException;

/** Storm's simple transport, whose server listens on loopback alone; Storm's own has no setting for its address. */
public class LoopbackTransport extends SimpleTransportPlugin {
    private static final int CLIENT_TIMEOUT = 0; // milliseconds; none, as in Storm
    private ThriftConnectionType served;
    private Map<String, Object> conf;
    private int listens;

    @Override
    public void prepare(ThriftConnectionType type, Map<String, Object> conf) {
        super.prepare(type, conf);
        this.served = type;
        this.conf = conf;
    }

    @Override
    public TServer getServer(TProcessor processor) throws IOException, TTransportException {
        InetAddress loopback = InetAddress.getLoopbackAddress();
        TNonblockingServerSocket socket =
            new TNonblockingServerSocket(new InetSocketAddress(loopback, served.getPort(conf)), CLIENT_TIMEOUT);
        listens = socket.getPort();
        int most = served.getMaxBufferSize(conf);
        int threads = served.getNumThreads(conf);
        Integer queue = served.getQueueSize(conf);
        BlockingQueue<Runnable> waiting =
            queue == null ? new LinkedBlockingQueue<>() : new ArrayBlockingQueue<>(queue);
        THsHaServer.Args how = new THsHaServer.Args(socket)
            .processor((in, out) -> {
                ReqContext.context().setRemoteAddress(loopback);
                ReqContext.context().setSubject(null); // nobody in particular, as with Storm's simple transport
                processor.process(in, out);
            })
            .executorService(new ThreadPoolExecutor(threads, threads, 60, TimeUnit.SECONDS, waiting))
            .protocolFactory(new TBinaryProtocol.Factory(false, true, most, -1));
        how.maxReadBufferBytes = most;
        return new THsHaServer(how);
    }

    @Override
    public int getPort() {
        return listens;
    }
}
