import { assert, describe, it } from "@effect/vitest"
import { readFileSync, readdirSync } from "node:fs"
import { splitStatements } from "../../../src/db/SqlStatements.ts"

describe("the split of a migration file into statements", () => {
  const cases: ReadonlyArray<[string, string, ReadonlyArray<string>]> = [
    ["is at semicolons", "select 1; select 2;\nselect 3", ["select 1", "select 2", "select 3"]],
    ["is empty without a statement", " \n;; -- x\n /* y */ ;", []],
    ["is not in quotes", `select ';', "a;b", 'it''s;'; x`, [`select ';', "a;b", 'it''s;'`, "x"]],
    [
      "is not in escape strings",
      String.raw`select E'\';', e'\\'; x`,
      [String.raw`select E'\';', e'\\'`, "x"]
    ],
    ["treats other backslashes as plain", String.raw`select '\'; x`, [String.raw`select '\'`, "x"]],
    ["knows a name that ends in e", "select name'x;'; y", ["select name'x;'", "y"]],
    ["is not in $$", "do $$ begin a; b; end $$; x", ["do $$ begin a; b; end $$", "x"]],
    ["is not in tags", "do $a$ $$;$b$; $a$; x", ["do $a$ $$;$b$; $a$", "x"]],
    ["finds no tags in names", "select a$b$ ; x $b$", ["select a$b$", "x $b$"]],
    ["does not take parameters for tags", "select $1; x $1", ["select $1", "x $1"]],
    ["is not in line comments", "select 1 -- a; 'b\n + 1; x", ["select 1 -- a; 'b\n + 1", "x"]],
    ["is not in nested comments", "/* ; /* ; */ ' */ a; b", ["/* ; /* ; */ ' */ a", "b"]],
    ["is not in parentheses", "create rule r as do (a; b); x", ["create rule r as do (a; b)", "x"]],
    ["lets unclosed quotes reach the end", "a; 'b;", ["a", "'b;"]],
    ["lets unclosed bodies reach the end", "a; $$b;", ["a", "$$b;"]]
  ]
  for (const [name, text, statements] of cases) {
    it(name, () => assert.deepStrictEqual(splitStatements(text), statements))
  }

  it("finds no transaction statement or BEGIN ATOMIC in the schema", () => {
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
