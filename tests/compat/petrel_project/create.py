import counting
import lines

from splitting import Split


def create(builder):
    builder.setSpout("lines", lines.Lines())
    builder.setBolt("split", Split(), 2).shuffleGrouping("lines")
    builder.addOutputStream("split", "long", ["word"])
    count = builder.setBolt("count", counting.Count(), 1)
    count.fieldsGrouping("split", ["word"]).fieldsGrouping("split", ["word"], "long")
