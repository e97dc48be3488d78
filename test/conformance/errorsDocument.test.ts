import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { problemHelp, taskErrorHelp, taskErrorTitles } from "../../src/domain/ErrorHelp.ts"
import { problemCodes } from "../../src/domain/Problem.ts"
import { errorsDocument } from "../../src/http/openapi/ErrorsDocument.ts"
import { taskErrorOf } from "../../src/tasks/submission/VendorFailure.ts"
import { VendorError, VendorErrorClass } from "../../src/vendors/VendorError.ts"

/** docs/reference/errors.md#problem-codes */

const sections = new Map(
  errorsDocument
    .split(/^#+ /mu)
    .slice(1)
    .map((text) => [text.slice(0, text.indexOf("\n")), text] as const)
)
const reference = readFileSync("docs/reference/errors.md", "utf8")

const sectionOf = (code: string): string => {
  const text = sections.get(code)
  assert.isDefined(text, code)
  for (const part of ["**Cause.**", "**Remedy.**", "**Send again.**"]) {
    assert.match(text!, new RegExp(`${part.replaceAll("*", "\\*")} \\S.{7,}`, "u"), code)
  }
  return text!
}

const exampleIn = (text: string) => JSON.parse(/```json\n(.*?)\n```/su.exec(text)?.[1] ?? "null")

describe("docs/errors.md", () => {
  it("is the output of `npm run schema`", () => {
    assert.strictEqual(readFileSync("docs/errors.md", "utf8"), errorsDocument)
  })

  it("has every problem code with its title, status, example response and reference row", () => {
    assert.sameMembers(Object.keys(problemHelp), Object.keys(problemCodes))
    for (const [code, { status, title }] of Object.entries(problemCodes)) {
      const text = sectionOf(code)
      assert.include(text, `${title}. HTTP status ${status}.`)
      const example = exampleIn(text)
      assert.deepInclude(example, {
        type: `/docs/errors#${code}`,
        code: Number(code),
        status,
        title
      })
      assert.match(reference, new RegExp(`^\\| ${code} \\| ${status} \\| `, "mu"))
    }
  })

  it("has every code of a failed task with its title", () => {
    for (const [code, title] of Object.entries(taskErrorTitles)) {
      assert.deepInclude(exampleIn(sectionOf(code)).error, { code: Number(code), title })
      assert.match(reference, new RegExp(`^\\| ${code} \\| ${title} \\| `, "mu"))
    }
    assert.sameMembers(Object.keys(taskErrorHelp), Object.keys(taskErrorTitles))
    for (const kind of VendorErrorClass.literals) {
      const { code, title } = taskErrorOf(new VendorError({ class: kind, message: "x" }))
      assert.strictEqual(new Map(Object.entries(taskErrorTitles)).get(String(code)), title)
    }
  })

  it("advises a retry only where it can succeed and cannot buy twice", () => {
    const retryOf = new Map(Object.entries({ ...problemHelp, ...taskErrorHelp }))
    for (const [code, { status }] of Object.entries(problemCodes)) {
      const isTransient = status === 408 || status === 429 || status >= 500 || code === "1102"
      assert.strictEqual(retryOf.get(code)?.retry === "later", isTransient, code)
    }
    assert.strictEqual(problemHelp[2017].retry, "get")
  })
})
