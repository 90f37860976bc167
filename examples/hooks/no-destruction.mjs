// PreToolUse of bash: commands that no task needs are not run, whatever the policy says of them.
let text = "";
for await (const piece of process.stdin) text += piece;
const { args } = JSON.parse(text);
const command = String(args.command ?? "");

const FORBIDDEN = [
  [
    /\brm\s+(?:-\S+\s+)*(?:-\w*[rR]\w*|--recursive)\b(?:\s+-\S+)*\s+["']?(?:\/|~|\$\{?HOME\}?)["']?(?:\/\*?|\*)?(?=["'\s;&|)]|$)/,
    "it removes everything",
  ],
  [/\bmkfs(?:\.\w+)?\b/, "it makes a file system"],
  [/\bdd\b[^;&|\n]*\bof=["']?\/dev\/(?!null\b|zero\b|stdout\b)/, "it writes to a device"],
  [/>\s*["']?\/dev\/(?:sd|hd|vd|nvme|mmcblk|disk)/, "it writes to a device"],
  [/(\w+|:)\s*\(\)\s*\{[^}]*?\1\s*\|\s*\1\s*&[^}]*\}/, "it is a fork bomb"],
];

const found = FORBIDDEN.find(([form]) => form.test(command));
if (found !== undefined) process.stdout.write(JSON.stringify({ decision: "skip", reason: found[1] }));
