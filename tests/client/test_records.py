from kvflow.client.records import CallRecord, CallState, Ledger, Result, RunRecord
from kvflow.workload import Call


def record(run: str, index: int) -> CallRecord:
    return CallRecord(Call(0, index, "a", 0, 0, (), None, 8, 8), run)


def enter(ledger: Ledger, call: CallRecord, *states: CallState) -> None:
    for state in states:
        call.state = state
        ledger.call_changed(call)


def test_ledger_holds_a_call_once_whatever_becomes_of_it() -> None:
    ledger, call = Ledger(), record("r0", 0)
    enter(ledger, call, CallState.WAITING, CallState.PREFILL, CallState.DECODING, CallState.DONE)
    assert ledger.calls == [call]
    assert ledger.calls[0].state is CallState.DONE


def test_ledger_forgets_the_calls_of_a_failed_run_that_were_never_sent() -> None:
    ledger = Ledger()
    failed, unsent, other = record("r0", 0), record("r0", 1), record("r1", 0)
    enter(ledger, failed, CallState.WAITING, CallState.FAILED)
    enter(ledger, unsent, CallState.WAITING)
    enter(ledger, other, CallState.WAITING)
    ledger.run_ended(RunRecord("r0", 0, 0.0, 1.0, ok=False))
    assert ledger.calls == [failed, other]


def test_result_failures_are_the_failed_calls() -> None:
    done, failed = record("r0", 0), record("r0", 1)
    done.state, failed.state = CallState.DONE, CallState.FAILED
    assert Result([done, failed], [], 1.0).failures == [failed]
