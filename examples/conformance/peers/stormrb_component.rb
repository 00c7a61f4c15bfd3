# The conformance component on Storm's own storm.rb: `ruby -I FOLDER stormrb_component.rb bolt`, storm.rb in FOLDER.
require "storm"

module Steps
  COMMON = %w[emit ids direct log error conf context print throw sleep].freeze

  def work(steps)
    steps.each { |name, *rest| send("do_#{name}", *rest) }
  end

  def do_contract
    do_emit([["conformance", 1, knows]])
  end

  def do_conf(key)
    do_emit([@conf[key]])
  end

  def do_context(key)
    do_emit([@context[key]])
  end

  def do_log(text, level = 2)
    log(text, level)
  end

  def do_error(text)
    reportError(text)
  end

  def do_print(text)
    puts text
  end

  def do_throw(text)
    raise text
  end

  def do_sleep(seconds)
    Kernel.sleep(seconds)
  end

  def emit_with(values, options, more)
    more[:stream] = options["stream"] if options["stream"]
    more[:direct_task] = options["task"] if options["task"]
    ids = emit(values, more)
    do_emit([["ids", ids]]) if options["ids"]
  end
end

class ConformanceBolt < Storm::Bolt
  include Steps

  def knows
    COMMON + %w[ack fail keep tuple]
  end

  def prepare(conf, context)
    @conf, @context, @kept = conf, context, {}
  end

  def process(tuple)
    @this, @open = tuple, true
    steps = tuple.values[0]
    work(steps.is_a?(Array) ? steps : [])
    do_ack if @open
  end

  def named(name)
    name == "this" ? @this : @kept[name]
  end

  def do_emit(values, options = {})
    emit_with(values, options, anchors: (options["anchors"] || ["this"]).map { |name| named(name) })
  end

  def do_ack(name = "this")
    ack(named(name))
    @open = false if name == "this"
  end

  def do_fail(name = "this")
    fail(named(name))
    @open = false if name == "this"
  end

  def do_keep(name)
    @kept[name] = @this
    @open = false
  end

  def do_tuple
    t = @this
    do_emit([[t.id, t.component, t.stream, t.task, t.values.drop(1)]])
  end
end

class ConformanceSpout < Storm::Spout
  include Steps

  def knows
    COMMON + %w[heard]
  end

  def open(conf, context)
    @conf, @context = conf, context
    @script = conf["conformance.script"] || []
    @on = conf["conformance.on"] || {}
  end

  def obey(steps, *heard)
    @heard = heard
    work(steps || [])
  end

  def nextTuple
    obey(@script.shift || [["sleep", 0.002]], "next", "")
  end

  def ack(id)
    obey(@on["ack"], "ack", id)
  end

  def fail(id)
    obey(@on["fail"], "fail", id)
  end

  def activate
    obey(@on["activate"], "activate", "")
  end

  def deactivate
    obey(@on["deactivate"], "deactivate", "")
  end

  def do_emit(values, options = {})
    emit_with(values, options, options.key?("id") ? { id: options["id"] } : {})
  end

  def do_heard
    do_emit([@heard])
  end
end

{ "bolt" => ConformanceBolt, "spout" => ConformanceSpout }[ARGV[0]].new.run
