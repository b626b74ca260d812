from redraft.model.gate.reasons import Abstain
from support.editors.paused_session import LOOP, spin
from support.editors.predictor import infill
from support.editors.workbench import URI, Workbench


def test_stale_alternatives_show_nothing() -> None:
    desk = Workbench()
    desk.answer("return x")
    known = len(desk.session.model.asks)
    task = LOOP.create_task(desk.session.ghost_texts(desk.query(invoked=True)))
    spin()
    (ask,) = desk.session.model.asks[known:]
    desk.becomes("# above\n" + desk.text)
    ask.answer.set_result(infill(ask.request, "return y"))
    spin()
    found = task.result()
    assert isinstance(found, Abstain) and found.kind == "document_changed", found


def test_second_prefetch_sees_the_first_edit() -> None:
    desk = Workbench("def area(r):\n    return r\n")
    other = desk.open("print(area(1))\n", "b.py")
    desk.swap("area(r)", "area(r, s)")
    snapshot = desk.query(other_documents=True)
    from redraft.lsp.suggestions.suggestion import Suggestion
    from redraft.model.edits.edit import Edit

    text = other.text
    edit = Suggestion.of(other.uri, "next_edit", Edit(text, 12, 12, ", 2"), 0, 1.0, "m")
    one = snapshot.after(edit)
    two = one.after(Suggestion.of(URI, "next_edit", Edit(desk.text, 0, 0, "# x\n"), 0, 1.0, "m"))
    assert two.opened.get(other.uri).text == edit.result
    assert two.text.startswith("# x") and two.user is snapshot and snapshot.text == desk.text
