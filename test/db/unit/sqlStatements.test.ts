import { assert, describe, it } from "@effect/vitest"
import { readFileSync, readdirSync } from "node:fs"
import { splitStatements } from "../../../src/db/SqlStatements.ts"

describe("a migration file is split into statements", () => {
  const cases: ReadonlyArray<[string, string, ReadonlyArray<string>]> = [
    ["at semicolons", "select 1; select 2;\nselect 3", ["select 1", "select 2", "select 3"]],
    ["nothing at all", " \n;; -- x\n /* y */ ;", []],
    ["not in quotes", `select ';', "a;b", 'it''s;'; x`, [`select ';', "a;b", 'it''s;'`, "x"]],
    [
      "not in escape strings",
      String.raw`select E'\';', e'\\'; x`,
      [String.raw`select E'\';', e'\\'`, "x"]
    ],
    ["backslashes are plain otherwise", String.raw`select '\'; x`, [String.raw`select '\'`, "x"]],
    ["a name that ends in e", "select name'x;'; y", ["select name'x;'", "y"]],
    ["not in $$", "do $$ begin a; b; end $$; x", ["do $$ begin a; b; end $$", "x"]],
    ["not in tags", "do $a$ $$;$b$; $a$; x", ["do $a$ $$;$b$; $a$", "x"]],
    ["tags are not in names", "select a$b$ ; x $b$", ["select a$b$", "x $b$"]],
    ["parameters are no tags", "select $1; x $1", ["select $1", "x $1"]],
    ["not in line comments", "select 1 -- a; 'b\n + 1; x", ["select 1 -- a; 'b\n + 1", "x"]],
    ["not in nested comments", "/* ; /* ; */ ' */ a; b", ["/* ; /* ; */ ' */ a", "b"]],
    ["not in parentheses", "create rule r as do (a; b); x", ["create rule r as do (a; b)", "x"]],
    ["unclosed quotes reach the end", "a; 'b;", ["a", "'b;"]],
    ["unclosed bodies reach the end", "a; $$b;", ["a", "$$b;"]]
  ]
  for (const [name, text, statements] of cases) {
    it(name, () => assert.deepStrictEqual(splitStatements(text), statements))
  }

  it("no file of the schema contains a transaction statement or BEGIN ATOMIC", () => {
    const directory = new URL("../../../schema/", import.meta.url)
    const names = readdirSync(directory, { recursive: true, encoding: "utf8" })
    for (const file of names.filter((name) => name.endsWith(".sql"))) {
      for (const statement of splitStatements(readFileSync(new URL(file, directory), "utf8"))) {
        assert.notMatch(statement, /^(begin|commit|rollback|start transaction)\b/i)
        assert.notMatch(statement, /\bbegin\s+atomic\b/i)
      }
    }
  })
})
