// Stop: puts the end off once where the answer says nothing of tests.
const asked = JSON.parse(await new Response(process.stdin).text());
if (asked.may_continue && asked.continued === 0 && !/\btests?\b/i.test(asked.answer)) {
  process.stdout.write(JSON.stringify({ continue: "Run the tests, and say what they showed." }));
}
