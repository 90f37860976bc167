import assert from "node:assert/strict";
import test from "node:test";
import { saysChanged, saysTestsPass } from "../../../src/agent/ending/answer-words.ts";

const CODE = "```python\ndef total(xs):\n    return sum(xs)\n```";

test("answers that say plainly that something was changed", () => {
  for (const answer of [
    "I have fixed the bug in sum.py.",
    "I've updated `sum.py`; all tests pass.",
    "Fixed.",
    "✅ Fixed the off-by-one in `sum.py`",
    "Done. Fixed the bug.",
    "**Fixed!** The loop starts at 0.",
    "The bug has been fixed.",
    "The loop is now corrected.",
    "The file was successfully updated.",
    "I made the change.",
    "I've made the necessary changes to sum.py.",
    "I have resolved the issue by adding the missing return.",
    "I applied the fix to `total()`.",
    "Changed the slice to `xs`. The tests pass.",
    "Summary:\n- Updated the loop in `sum.py`\n- Added a test",
    `I changed the function as follows:\n${CODE}`,
    "I successfully renamed the option.",
    "I went ahead and replaced the constant.",
    "Ich habe den Fehler behoben.",
    "Der Fehler wurde behoben.",
    "J’ai corrigé le bug.",
    "He corregido el error.",
    "Corrigi o erro.",
    "Ho corretto il bug.",
    "Я исправил ошибку.",
    "我已经修复了这个错误。",
    "修正しました。",
    "버그를 수정했습니다.",
  ])
    assert.ok(saysChanged(answer), answer);
});

test("honest answers are not accused, whatever words of deeds stand in them", () => {
  for (const answer of [
    "",
    "done",
    "Done.",
    "It is done.",
    "All tests pass.",
    "Nothing needs to change: total() is right as it is.",
    "No change is needed; I changed nothing.",
    "I made sure that nothing needs doing.",
    "I looked at sum.py and made no changes.",
    "The bug has already been fixed in an earlier commit.",
    "The bug was fixed in commit 3f2a.",
    "This has been fixed by the last commit.",
    "It appears that this has been fixed.",
    "Fixed in 2.3, so there is nothing to do.",
    "I did not change anything, as the flag is set.",
    "I haven't changed the file: the test cannot be reproduced.",
    "I have not fixed it yet.",
    "If I changed this line, the other test would fail.",
    "I tried it: I changed the line, ran the tests, and reverted it.",
    "I added a print, saw the value, and put it back.",
    "I changed it and the suite failed, so I restored the file.",
    "I added up the numbers: 42.",
    "I created a plan: 1. move total 2. rename it",
    "I made a list of the functions.",
    "I made three observations about the code.",
    "I have updated my understanding: the option is read twice.",
    "I created the folder out/.",
    "I created a branch and a tag for it.",
    "You should change `xs[1:]` to `xs` in line 3.",
    "Once you have changed the line, run the tests.",
    "Should I change xs[1:] to xs?",
    "Now I will fix the bug.",
    "Let me edit the file.",
    "I need to update the import; may I?",
    "To fix this, open sum.py.",
    "The line could be replaced by a loop.",
    "The function should have been renamed.",
    "The author changed the signature.",
    'The log says "I fixed the bug".',
    "> I fixed it\nis what the commit says.",
    `The file has:\n${CODE}\nand a comment, \`I fixed this\`.`,
    "The flag was changed from true to false last year.",
    "Modified files: none",
    "Removed: none. Added: none.",
    "Deleted rows are kept in the journal.",
    "Updated dependencies are listed in package.json.",
    "I resolved the import path: it is src/a.ts.",
    "I ran the formatter and the tests; both succeed.",
    "I started the server on port 80.",
    "I could not fix the bug.",
    "I can't edit this file, it is protected.",
    "The update has been applied upstream.",
    "The timestamp of a.txt has been updated.",
    "Ich habe nichts geändert.",
    "Ich habe den Fehler nicht behoben.",
    "Je n'ai pas corrigé le bug.",
    "No he corregido nada.",
    "Я не исправил ошибку.",
    "我没有修改任何文件。",
    "修正していません。",
  ])
    assert.ok(!saysChanged(answer), answer);
});

test("a long answer is read in a bounded time, at its beginning and its end", () => {
  const long = `${"lorem ipsum ".repeat(200_000)}\nI have fixed the bug.`;
  assert.ok(saysChanged(long));
  assert.ok(!saysChanged(`${"i have ".repeat(100_000)}${"the ".repeat(100_000)}`));
});

test("that tests pass is a claim where it is said plainly, of all of them and of now", () => {
  for (const answer of [
    "All tests pass.",
    "All 12 tests now pass.",
    "I fixed the sum. The tests pass.",
    "Fixed; the test suite is green.",
    "✅ All tests are passing",
    "Everything passes.",
    "The bug is gone and all unit tests passed successfully.",
    "Alle Tests laufen.",
    "Tous les tests passent.",
    "所有测试都通过了。",
    // Each holds one of the words by which a claim is looked for at all, and no other.
    "Every spec passes.",
    "All specs succeeded.",
    "All green!",
    "Todas las pruebas pasan.",
    "Все тесты проходят.",
    "テストはすべて成功しました。",
  ])
    assert.ok(saysTestsPass(answer), answer);
  for (const answer of [
    "",
    "Done.",
    "The tests do not pass yet.",
    "All tests pass except test_date, which fails for want of a network.",
    "The tests should pass now.",
    "Run `npm test` to see that all tests pass.",
    "If the tests pass, merge it.",
    "Not all tests pass.",
    "Two tests pass, one fails.",
    "To make the tests pass, change line 3.",
    "The other tests still pass, but one does not.",
    "I could not check whether all tests pass.",
    "```\nAll tests pass.\n```",
    'It printed "all tests pass".',
  ])
    assert.ok(!saysTestsPass(answer), answer);
});
