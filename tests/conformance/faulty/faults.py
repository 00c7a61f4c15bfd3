"""Each fault, the programs that are given it, and the section whose requirement it breaks.

The programs are contract bolts and spouts ("cb", "cs") and ordinary ones ("ob", "os"). A section with a question mark is
one of a SHOULD, which fails a run with --strict alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

ALL = "cb cs ob os"

TABLE = f"""
common/handshake   {ALL}  pid_as_text no_pid pid_twice log_before_the_pid pid_in_an_array
common/handshake   {ALL}  wants_pid_dir_first small_conf strict_setup
common/handshake   cb cs  conf_as_texts conf_in_small_letters
common/pid         {ALL}  no_pid_file pid_file_suffix pid_of_the_parent pid_file_goes pid_file_goes_later
common/pid         {ALL}  ascii_pid_dir
common/context     cb cs  context_renamed
common/pid?        {ALL}  pid_file_has_text another_file_in_pid_dir
common/framing     {ALL}  banner prints prints_a_number prints_garbage empty_message array_message blank_behind_end byte_order_mark
common/framing     {ALL}  python_literals no_line_feed_behind_end no_end end_in_capitals
common/framing     {ALL}  breaks_off second_object_in_a_message
common/framing     cb ob  nested_deep
common/framing     cb     writes_latin1
common/framing?    {ALL}  crlf empty_lines key_twice raw_control
common/io          {ALL}  expects_a_message_in_a_read holds_output_back writes_much_first
common/io          cb ob  drops_what_a_read_has_more reads_before_it_looks
common/io          cb cs  splits_letters
common/io          cs os  stderr_of_100_KB stderr_of_100_KB_on_ack
common/json        {ALL}  one_line_a_message wants_no_blanks
common/json        {ALL}  wants_the_usual_order
common/json        cb cs  dies_of_escapes ends_at_end_anywhere booleans_are_numbers
common/json        cb     nulls_are_empty
common/json        cb cs  dates_are_read loses_keys_of_the_language copies_keys maps_are_texts
common/json        cb cs  drops_empty_texts nulls_are_left_out keys_in_small_letters
common/json        cb cs  texts_are_trimmed line_ends_are_unified blanks_are_joined what_is_false_is_null lists_in_lists_are_one
common/unicode     cb cs  texts_are_normalised
common/numbers     cb cs  long_integers_are_doubles doubles_of_6_digits
common/unicode     cb     reads_latin1 drops_letters no_other_letters writes_ascii
common/unicode     cb cs  splits_lines_anywhere
bolt/ordinary      ob     reads_latin1 drops_letters no_other_letters writes_ascii
common/sizes       cb cs  cuts_texts
common/sizes       cb     cuts_messages
common/framing     ob     cuts_messages
common/sizes       cb     small_buffer
common/sizes       {ALL}  silent_after_3000 dies_after_2000
bolt/ordinary      ob     small_buffer
common/numbers     cb     numbers_are_texts
common/numbers     cb cs  all_numbers_are_texts number_texts_are_numbers
common/numbers?    cb     numbers_are_doubles
common/numbers?    ob     nan
common/log         {ALL}  log_is_an_object log_is_a_number
common/log         cb cs  logs_a_line short_logs logs_are_formats
common/log?        cb cs  no_empty_logs
common/log?        {ALL}  log_without_text level_in_words
common/log?        cb cs  one_level
common/error       {ALL}  error_is_an_object
common/error       cb cs  errors_are_a_line dies_of_an_error
common/error       cb cs  error_without_text
common/error?      ob os  error_without_text
common/error?      cb     swallows_exceptions
common/metrics     {ALL}  metric_without_name
common/metrics     cb cs  metrics_are_texts
common/context     {ALL}  wants_component_id small_tasks no_system_tasks few_tasks wants_an_output grouping_has_fields
common/unknown     {ALL}  refuses_unknown_keys no_command command_is_a_number command_is_op
common/end         {ALL}  outlives_its_input spins_at_its_end ignores_sigterm helper_at_start helper_in_its_group helper_at_work
common/end?        {ALL}  ends_with_status_1
common/io?         cb cs  prints_to_stdout

bolt/heartbeat     cb ob  heartbeats_have_a_component heartbeats_have_no_component no_sync every_other_heartbeat few_heartbeats
bolt/heartbeat     cb ob  no_sync_behind_a_tuple acks_heartbeats torn_by_heartbeats timer_tears
bolt/heartbeat     cb     no_sync_with_a_tuple_in_hand loses_heartbeats_while_waiting
bolt/heartbeat?    cb ob  two_syncs logs_heartbeats
bolt/tick          cb ob  negative_tasks_are_heartbeats never_acks_a_tick
bolt/ordinary      cb ob  dies_of_a_tick hangs_at_a_tick
bolt/ordinary      ob     loses_the_7th_tuple dies_of_a_tuple hangs_at_a_tuple dies_of_the_30th_tuple dies_of_task_ids hangs_at_task_ids
bolt/ordinary?     ob     never_acks
bolt/ordinary?     ob     waits_for_ids_it_declined
bolt/tuple         cb     equal_tuples_are_one ids_are_doubles no_component every_stream_is_default
bolt/emit          cb     one_stream emits_twice
bolt/emit          cb ob  stream_is_a_number empty_stream tuple_is_text tuple_is_an_object tuple_is_null emit_without_values
bolt/emit          cb     another_stream need_is_text
bolt/emit          cb     one_value_more
bolt/emit?         cb ob  unknown_command
bolt/task_ids      cb     wants_a_task one_task_id last_ids_first loses_tuples_while_waiting keeps_60_while_waiting
bolt/task_ids      cb     keeps_140_while_waiting works_within_a_wait last_first_while_waiting refused_emit_shifts no_ids_for_emits
bolt/task_ids      cb     waits_for_ids_it_declined waits_for_every_20th_it_declined
bolt/task_ids?     cb     asks_and_forgets
bolt/anchors       cb     no_anchors always_anchors one_anchor
bolt/anchors       cb ob  anchors_of_the_previous anchors_are_numbers anchors_are_indexes anchors_are_tuples emits_behind_the_ack acks_first
bolt/anchors       cb     anchor_twice no_anchors_on_streams
bolt/anchors?      ob     anchor_twice
bolt/anchors?      cb ob  anchor_without_a_list
bolt/ack           cb ob  acks_twice acks_numbers acks_the_unknown acks_a_tick_twice acks_without_id
bolt/ack           cb     keeps_the_last_50 never_acks acks_are_fails acks_what_is_kept
bolt/fail          cb ob  acks_and_fails
bolt/fail          cb     fails_are_acks acks_what_threw
bolt/ack           cb     fails_what_it_acked
bolt/direct        cb     task_that_is_not_there waits_for_ids_of_direct_emits another_task task_as_text no_task
bolt/direct?       cb     small_task

spout/commands     cs os  silent_on_activate silent_on_deactivate dies_on_activate dies_on_deactivate acks_back
spout/commands     os     silent_on_next dies_on_next silent_when_idle dies_on_the_70th_next
spout/commands     cs     silent_behind_an_exception acks_are_fails acks_with_numbers_as_texts begins_anew_when_activated hears_nothing_while_inactive
spout/ordinary     os     reads_ids_of_reliable_emits
bolt/heartbeat     cb ob  one_sync_a_second
bolt/ack           cb     acks_the_newest
spout/ordinary     os     silent_on_ack silent_on_fail dies_on_ack dies_on_fail ack_of_an_integer dies_on_a_third_ack
spout/ordinary     cs     silent_on_ack silent_on_fail dies_on_ack dies_on_fail
spout/ordinary     os     silent_while_inactive dies_of_task_ids hangs_at_task_ids
spout/ordinary     os     syncs_to_task_ids forgets_on_fail acks_come_in_order knows_the_last_ten
spout/sync         cs os  two_syncs two_syncs_on_ack two_syncs_on_fail two_syncs_on_next two_syncs_on_deactivate two_syncs_sometimes
spout/sync         os     sync_first late_second_sync
spout/sync         os     emits_behind_the_sync emits_from_a_timer
spout/sync?        cs os  never_sleeps
spout/emit         cs     equal_emits_are_one other_streams_are_unreliable one_stream emits_twice no_ids_that_are_false ids_are_texts ids_are_integers ids_have_a_prefix never_reliable
spout/emit         cs     always_reliable
spout/emit         cs os  stream_is_a_number empty_stream tuple_is_text tuple_is_an_object tuple_is_null emit_without_values
spout/emit?        os     id_is_an_object
spout/commands     cs os  unknown_command
spout/task_ids     cs     wants_a_task one_task_id keeps_acks_while_waiting loses_acks_while_waiting
spout/task_ids     cs     waits_for_ids_it_declined waits_for_every_20th_it_declined
spout/task_ids?    cs     asks_and_forgets
spout/direct       cs     task_that_is_not_there direct_is_unreliable another_task task_as_text no_task waits_for_ids_of_direct_emits
spout/direct?      cs     small_task
"""

PROGRAMS = {"cb": "contract-bolt", "cs": "contract-spout", "ob": "ordinary-bolt", "os": "ordinary-spout"}


SHOULD = "?"


class FaultyProgram(NamedTuple):
    """One component with one fault."""

    program: str
    fault: str
    section: str
    is_should: bool

    @property
    def kind(self) -> str:
        """ "bolt" or "spout"."""
        return self.program.split("-")[1]

    @property
    def contract(self) -> bool:
        """True if it keeps the conformance contract."""
        return self.program.startswith("contract")


def programs(source: str) -> list[FaultyProgram]:
    """Return the faulty programs that a component with this source can be."""
    switches = set(re.findall(r'"(\w+?)(?:\{command\})?"', source))
    found = []
    for line in filter(None, TABLE.splitlines()):
        section, *words = line.split()
        short = [word for word in words if word in PROGRAMS]
        found += [
            FaultyProgram(PROGRAMS[each], fault, section.rstrip(SHOULD), section.endswith(SHOULD))
            for fault in words[len(short) :]
            for each in short
            if switches & {fault, re.sub("_on_.*", "_on_", fault)}
        ]
    return found
