import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { splitStatements } from "../../../src/db/SqlStatements.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))

const filesOf = (folder: string, extension: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(extension))
    .sort()
    .map((name) => ({ name, text: readFileSync(join(root, folder, name), "utf8") }))

const withoutComments = (text: string) => text.replaceAll(/--[^\n]*/gu, "")

const functionFiles = filesOf("schema/functions", ".sql")
const functions = functionFiles.flatMap(({ name, text }) =>
  splitStatements(text).map((statement) => ({
    file: name,
    statement,
    name: /^create or replace function (\w+)\(/mu.exec(statement)?.[1]
  }))
)

describe("schema/functions", () => {
  it("contains nothing but functions that can be applied again", () => {
    for (const { file, statement } of functions) {
      const [first = ""] = withoutComments(statement).trim().split("\n")
      assert.match(first, /^create or replace function \w+\(/u, file)
    }
  })

  it("contains each function once", () => {
    const names = functions.map(({ name }) => name)
    assert.deepStrictEqual(names, [...new Set(names)])
  })

  it("has no function that nothing calls", () => {
    const callers = [
      ...filesOf("src", ".ts").map(({ text }) => text),
      ...functions.map(({ statement }) => withoutComments(statement))
    ]
    for (const { name, statement } of functions) {
      const calls = callers.filter(
        (text) => text !== withoutComments(statement) && new RegExp(`\\b${name}\\b`, "u").test(text)
      )
      assert.isAbove(calls.length, 0, name)
    }
  })

  it("reads no clock of the database", () => {
    for (const { name, statement } of functions) {
      assert.notMatch(
        withoutComments(statement),
        /\b(?:now\(\)|current_timestamp|clock_timestamp|statement_timestamp)/iu,
        name
      )
    }
  })
})

describe("schema/migrations", () => {
  it("calls no function of schema/functions, because a new database gets them after the migrations", () => {
    for (const { name, text } of filesOf("schema/migrations", ".sql")) {
      const sql = withoutComments(text)
      for (const called of functions) {
        assert.notMatch(sql, new RegExp(`\\b${called.name}\\(`, "u"), name)
      }
    }
  })
})
