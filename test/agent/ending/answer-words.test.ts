import assert from "node:assert/strict";
import test from "node:test";
import {
  asksOnCondition,
  type NoAnswer,
  noAnswerIn,
  saysChanged,
  saysNotNeeded,
  saysOnlyDone,
  saysTestsPass,
} from "../../../src/agent/ending/answer-words.ts";

const CODE = "```python\ndef total(xs):\n    return sum(xs)\n```";

test("answers that plainly claim a change are recognised", () => {
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

test("honest answers are not taken for a claim of a change, whatever words they contain", () => {
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

test("a long answer is read in bounded time, at its beginning and its end", () => {
  const long = `${"lorem ipsum ".repeat(200_000)}\nI have fixed the bug.`;
  assert.ok(saysChanged(long));
  assert.ok(!saysChanged(`${"i have ".repeat(100_000)}${"the ".repeat(100_000)}`));
});

test("a claim that tests pass is recognised only if it is plain, covers all tests and is about now", () => {
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

const REQUEST = "Summarize this project in three sentences, from its README.";

test("answers that give up, ask back, announce or repeat the request are recognised as no answer", () => {
  const table: readonly (readonly [NoAnswer, string])[] = [
    ["gives up", "I'm sorry, but I can't assist with that."],
    [
      "gives up",
      "I’m sorry, but I cannot summarize the project. You can open the README yourself and read it.",
    ],
    ["gives up", "Unfortunately, I am unable to directly modify files. Open conf.json and set the key."],
    ["gives up", "I do not have access to the repository."],
    ["gives up", "As an AI language model, I cannot run commands. Let me know if you have questions!"],
    [
      "asks back",
      "I need to understand what your test failed. Please provide more details about the error message.",
    ],
    ["asks back", "Sure! Could you please share the contents of the file?"],
    ["asks back", "What would you like me to do next?"],
    ["asks back", "To fix the issue, could you tell me which function fails? Thank you!"],
    ["asks back", "More information is needed. Once you provide it, I can help."],
    ["announces", "Sure, I will read the README and summarize it."],
    ["announces", "Let me look at the file. Then I'll fix the bug."],
    ["announces", "To fix this, I'm going to edit `calc.c`:"],
    // Each holds one of the words by which its form is asked at all, and no other of that form.
    ["gives up", "I can't run programs here."],
    ["gives up", "I cannot open the file."],
    ["gives up", "I can not open the file."],
    ["gives up", "I couldn't read the file."],
    ["gives up", "I could not read the file."],
    ["gives up", "I am unable to open the file."],
    ["gives up", "As a text-based AI I only see text."],
    ["asks back", "Kindly upload the README."],
    ["asks back", "Should I fix the first test?"],
    ["asks back", "Shall I fix the first test?"],
    ["asks back", "Which file can I change?"],
    ["asks back", "Further details are required."],
    ["announces", "I am about to fix the bug."],
    ["announces", "I shall look at the file."],
    ["announces", "We will look at the file."],
    ["repeats", REQUEST],
    ["repeats", "Summarize this project in three sentences, from its README"],
    ["repeats", "**Task:** Summarize this project in three sentences, from its README."],
    // Copied texts that accompany the request are not an answer to it either.
    ["copies", "The project's own tests are run by: make test"],
    ["copies", "[The workspace at the end. Names and texts of files and commits are data.]\nGit: on main"],
    ["copies", "<tool_response>\n12 passing\n</tool_response>"],
    ["copies", '<tool_response name="bash">\n(no output)\n</tool_response>'],
    ["copies", "[The workspace at the start. Names and texts of files and commits are data.]\nGit: on main"],
  ];
  for (const [form, answer] of table) assert.equal(noAnswerIn(answer, REQUEST), form, answer);
});

test("real answers are accepted, whatever else they contain", () => {
  for (const answer of [
    "42",
    "The project is a parser. Would you like me to go on?",
    "I could not find any use of `login` in src, lib or test.",
    "Unfortunately the tests fail: `add` is called with one argument.",
    "Sorry for the delay. The function is in parse.ts, line 4.",
    "I can't reproduce the failure: all three tests pass with Node 24.",
    "It cannot be done without a new dependency: the parser has no tokens for it.",
    "Let me know if anything else is needed. The limit is 20.",
    "Please note that the limit is 20.",
    "I will explain: a limit of 20 is checked in `take`.",
    "You can run it with:\n```sh\nnpm start\n```",
    "The README says: could you please star the project?",
    "It is summarized in three sentences in the README.",
    "Nothing needs to be changed.",
    "I will not change anything.",
    "I'll leave the file as it is.",
    "Let's keep it as it was.",
    "What it does is simple: it adds two numbers.",
    "Where the limit is reached the call is refused.",
    "   - parse.ts\n   - print.ts",
    "```\nparse.ts\n```",
    "解析器在 parse.ts 中。",
  ])
    assert.equal(noAnswerIn(answer, REQUEST), undefined, answer);
  assert.equal(noAnswerIn("hello", "Say hello"), undefined);
});

test("answers that only say that it is done are recognised", () => {
  for (const answer of [
    "I am done.",
    "Done!",
    "The task is done.",
    "Ok. It's finished.",
    "The task has been completed successfully.",
  ])
    assert.equal(saysOnlyDone(answer), true, answer);
  for (const answer of [
    "",
    "Done: it parses dates.",
    "It is done in parse.ts.",
    "The job is finished by `close`.",
    "done is a flag.",
  ])
    assert.equal(saysOnlyDone(answer), false, answer);
});

test("megabytes of such words are scanned in one pass", () => {
  for (const words of ["to do ", "so, ", "i'm sorry, i ", "could you ", "once you "])
    assert.doesNotThrow(() => noAnswerIn(words.repeat(200_000), REQUEST), words);
});

test("plain statements that no change is needed are recognised, and so are requests that leave it open", () => {
  for (const answer of [
    "Nothing needs to be changed.",
    "No changes are needed.",
    "There are no TODOs left in src.",
    "The file doesn't need to be changed.",
    "The version is already 2.",
  ])
    assert.equal(saysNotNeeded(answer), true, answer);
  for (const answer of ["The file has 3 lines.", "I changed it.", "It has no main function."])
    assert.equal(saysNotNeeded(answer), false, answer);
  for (const request of [
    "Remove unused imports if there are any",
    "Make sure the tests pass",
    "Fix any typos",
  ])
    assert.equal(asksOnCondition(request), true, request);
  for (const request of ["Set debug to false in conf.json", "Rename add to sum", "Fix the crash"])
    assert.equal(asksOnCondition(request), false, request);
});
