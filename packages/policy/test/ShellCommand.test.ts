import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ShellCommand from "../src/ShellCommand.ts"
import { explained, type Policy } from "./support/office.ts"

const status: Policy = { rules: [{ action: "allow", when: { command: { command: ["git status"] } } }] }
const shell = (command: unknown) => ({
  tool: "shell",
  effect: "unsafe" as const,
  destructive: true,
  arguments: { command }
})
const actionOf = (policy: Policy, command = "") => Effect.map(explained(policy, shell(command)), ({ action }) => action)

describe("shell commands", () => {
  it.effect.each([
    "git status",
    "  git   status  ",
    "git status\n",
    "git 'status'",
    'g"it" status',
    "git status # all"
  ])("RI-020 allows exactly git status: %j", (command) =>
    Effect.map(actionOf(status, command), (action) => expect(action).toBe("allow"))
  )

  it.effect.each([
    ["the second command of a list", "git status; rm x"],
    ["a command after and", "git status && rm x"],
    ["a command after or", "git status || rm x"],
    ["a pipe", "git status | sh"],
    ["a substitution in front", "$(rm x) git status"],
    ["a second line", "git status\nrm x"],
    ["a carriage return", "git status\r"],
    ["a substitution as argument", 'git status "$(rm x)"'],
    ["backticks", "git status `rm x`"],
    ["a process substitution", "git status <(rm x)"],
    ["a redirect", "git status > x"],
    ["a redirect in front", "> x git status"],
    ["a here-document", "git status <<E\nx\nE"],
    ["a job in the background", "git status &"],
    ["eval", "eval git status"],
    ["sh -c", "sh -c 'git status'"],
    ["a shell by its path", "/bin/bash -c 'git status'"],
    ["an environment in front", "GIT_PAGER=x git status"],
    ["env", "env git status"],
    ["xargs", "xargs git status"],
    ["sudo", "sudo git status"],
    ["a function of that name", "git() { rm x; }\ngit status"],
    ["an alias of that name", "alias git=rm\ngit status"],
    ["a negation", "! git status"],
    ["a subshell", "(git status)"],
    ["a group", "{ git status; }"],
    ["a variable", "git $X"],
    ["a glob", "git stat*"],
    ["braces", "git {status,push}"],
    ["ANSI quotes", "git $'status'"],
    ["an open quote", "git 'status"],
    ["another argument", "git status x"],
    ["an option", "git status -s"],
    ["another program of that name", "./git status"],
    ["a longer word", "git statuses"],
    ["only text of it", "echo 'git status'"],
    ["a folder of that name", "rm -rf ~/work; ls .claude/"],
    ["nothing", ""],
    ["a comment", "# git status"],
    ["control characters", "git status\u0000rm x"],
    ["a space that is none to a shell", "git\u00a0status"],
    ["something very long", `git status ${" ".repeat(20_000)}`],
    ["deep nesting", "(".repeat(5_000)]
  ])("RI-020 asks about %s", ([, command]) =>
    Effect.map(actionOf(status, command), (action) => expect(action).toBe("ask"))
  )

  it.effect("allows a list of which every command is allowed by the rule, and says why it asks otherwise", () =>
    Effect.gen(function* () {
      const policy: Policy = {
        rules: [{ action: "allow", when: { command: { command: ["git status", "npm test"] } } }]
      }
      expect(yield* actionOf(policy, "git status && npm test; git status")).toBe("allow")
      expect(yield* explained(policy, shell("git status | npm test"))).toEqual({
        action: "ask",
        rule: "rules[0]",
        reason: "the command is more than simple commands: it contains a pipe or a negation"
      })
    })
  )

  it.effect.each([
    ["npm run *", "npm run build", "allow"],
    ["npm run *", "npm run -s", "ask"],
    ["npm run *", "npm run a b", "ask"],
    ["npm run test:*", "npm run test:unit", "allow"],
    ["git log **", "git log", "allow"],
    ["git log **", "git log -n 3 a.ts", "allow"],
    ["git log **", "git show", "ask"],
    ["*", "ls", "allow"],
    ["ls *.ts", "ls 'a b.ts'", "allow"],
    ["ls *.ts", "ls *.ts", "ask"],
    ["ls *", "ls ~", "ask"]
  ] as const)("a pattern %j and %j: %s", ([pattern, command, action]) =>
    Effect.map(
      actionOf({ rules: [{ action: "allow", when: { command: { command: [pattern] } } }] }, command),
      (found) => expect(found).toBe(action)
    )
  )

  const noRm: Policy = {
    rules: [
      { name: "no-rm", action: "deny", when: { command: { command: ["rm **", "git push **"] } } },
      { action: "allow", tools: ["shell"] }
    ]
  }

  it.effect.each([
    "rm x",
    "/bin/rm x",
    "r\\m x",
    "'rm' -rf /",
    "ls; rm x",
    "ls | rm x",
    "echo $(rm x)",
    'echo "`rm x`"',
    "if true; then rm x; fi",
    "f() { rm x; }",
    "rm $X",
    "rm *",
    "X=1 rm x",
    "rm x > y",
    "git push --force",
    // Programs that run others: no list of them is complete.
    "setpriv rm x",
    "taskset 1 /bin/rm x",
    "strace -f rm x",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
    "env A=1 nice -n 5 rm x",
    "find . -name a -exec rm {} ';'",
    "find . -exec rm {} +",
    "sh -c 'cd a && rm x'",
    "bash -lc \"nice sh -c 'rm x'\"",
    "ssh host 'rm x'",
    "find . -exec sh -c 'rm \"$1\"' _ {} ';'",
    // Options of git before its verb.
    "git --no-pager push",
    "git -C /a -c a.b=c --git-dir=/x push --force",
    "nice git --work-tree /a -p push",
    "/usr/bin/git --no-pager push",
    // A text after an option that says that it is a command, of a program that is not known to run one.
    "setpriv mysh -lc 'rm x'",
    "nix develop --command 'rm x'"
  ])("denies wherever the forbidden command can be seen: %j", (command) =>
    Effect.map(explained(noRm, shell(command)), (decision) =>
      expect(decision).toMatchObject({ action: "deny", rule: "no-rm" })
    )
  )

  it.effect("a pattern of exactly these words holds behind other programs as well", () =>
    Effect.gen(function* () {
      const policy: Policy = {
        rules: [
          { action: "deny", when: { command: { command: ["git push", "npm publish *"] } } },
          { action: "allow", tools: ["shell"] }
        ]
      }
      for (const [command, action] of [
        ["nice git push", "deny"],
        ["find . -exec git push ';'", "deny"],
        ["find . -exec git push +", "deny"],
        ["taskset 1 npm publish a", "deny"],
        ["git push origin", "allow"],
        ["npm publish a b", "allow"]
      ] as const)
        expect(yield* actionOf(policy, command), command).toBe(action)
    })
  )

  it.effect("a pattern that leaves its program open is about the first word, and not about any", () =>
    Effect.gen(function* () {
      const policy: Policy = {
        rules: [
          { action: "deny", when: { command: { command: ["* push"] } } },
          { action: "allow", tools: ["shell"] }
        ]
      }
      expect(yield* actionOf(policy, "hg push")).toBe("deny")
      expect(yield* actionOf(policy, "echo hg push")).toBe("allow")
    })
  )

  it.effect.each([
    "git commit -m 'rm what is old'",
    "npm run build",
    "git --no-pager log",
    "git -C push status",
    "echo 'git push'"
  ])("does not take words for commands that nothing runs: %j", (command) =>
    Effect.map(actionOf(noRm, command), (action) => expect(action).toBe("allow"))
  )

  it.effect.each(["$X x", "eval 'r''m x'", "sh -c 'rm x'", "xargs rm", "sudo rm x", "git $X", "rm 'x"])(
    "R3 asks where it may be hidden, though a later rule allows everything: %j",
    (command) => Effect.map(actionOf(noRm, command), (action) => expect(["ask", "deny"]).toContain(action))
  )

  it.effect("R3 a later rule that denies still denies what is not clear", () =>
    Effect.map(actionOf({ rules: [...status.rules, { action: "deny", tools: ["shell"] }] }, "eval x"), (action) =>
      expect(action).toBe("deny")
    )
  )

  it.effect("R2 a command that is no text denies", () =>
    Effect.map(explained(status, shell(1)), (decision) =>
      expect(decision).toEqual({
        action: "deny",
        rule: "rules[0]",
        reason: "it cannot be evaluated: the argument is not a text"
      })
    )
  )
})

describe("ShellCommand.read", () => {
  it.each([
    ["cat < /a > b", ["cat", "/a", "b"]],
    ["A=/a; cat $A", ["/a", "cat", undefined]],
    ["echo `cat /a` ${B:-/b}", ["echo", undefined, "cat", "/a", undefined, "/b"]],
    ["for f in /a; do cat '/b'; done", ["f", "/a", "cat", "/b"]],
    ["cat ~/a {b,c} *", ["cat", undefined, undefined, undefined]]
  ])("C2 gives every word of %j, with its value if that is known", (text, values) => {
    const { parsed, words } = ShellCommand.read(text)
    expect(parsed).toBe(true)
    expect(words.map(({ value }) => value)).toEqual(expect.arrayContaining(values))
    expect(words.filter(({ value }) => value === undefined)).toHaveLength(
      values.filter((value) => value === undefined).length
    )
  })

  it.each(["cat 'x", "(", "a\u0000b", `echo ${"x".repeat(20_000)}`])(
    "says that not all of %j was understood",
    (text) => {
      expect(ShellCommand.read(text).parsed).toBe(false)
    }
  )
})
