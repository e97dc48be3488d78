import { assert, describe, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { documents, readDocument } from "../../support/samples/documents.ts"
import { blocksOf, isDrawing, labelOf } from "../../support/samples/Markdown.ts"
import { stepsOf } from "../../support/samples/SamplePage.ts"
import { projectFolder } from "../../support/spawnService.ts"
import { externalHosts } from "../externalHosts.ts"
import { notRun, samplePages } from "../notRun.ts"

/** A decision shows what was considered; readers do not follow its steps. */
const pages = documents.filter((path) => !path.startsWith("docs/adr/"))

const tests = readdirSync(join(projectFolder, "test"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && !name.split("/").includes("node_modules"))
  .filter((name) => !name.startsWith("docs/"))
  .map((name) => readFileSync(join(projectFolder, "test", name), "utf8"))

/** Whether a test opens the page, that is, names its path outside of a citation. */
const isReadByTest = (path: string): boolean => tests.some((text) => text.includes(`${path}"`))

/** Replaces paths to sources by what readers of this project import. */
const published = (text: string): string =>
  text
    .replaceAll(/(?<=from ")[./]+\/src\/index\.ts(?=")/gu, "generation-gateway")
    .replaceAll(/(?<=from ")[./]+\/src\/testing\/index\.ts(?=")/gu, "generation-gateway/testing")

describe("blocks of code", () => {
  it("are run as samples on every page of a tutorial", () => {
    const tutorials = documents.filter((path) => path.startsWith("docs/tutorials/"))
    assert.includeMembers([...samplePages], tutorials)
    for (const path of samplePages) {
      const steps = stepsOf(readDocument(path), notRun[path] ?? {})
      assert.isTrue(
        steps.some(({ kind }) => kind === "run" || kind === "excerpt"),
        path
      )
    }
  })

  it("that are excerpts of a file are in it, and npm test runs the file", () => {
    for (const path of samplePages) {
      for (const { kind, block } of stepsOf(readDocument(path), notRun[path] ?? {})) {
        if (kind !== "excerpt") continue
        const { name = "", text } = block
        assert.include(published(readDocument(name)), text, `${path}:${block.line}`)
        assert.match(name, /^(?:examples|test)\//u)
      }
    }
  })

  it("that are excerpts of a file on other pages are in it, too", () => {
    for (const path of pages.filter((it) => !samplePages.includes(it))) {
      for (const { line, name = "", text } of blocksOf(readDocument(path))) {
        if (!/^(?:examples|test)\//u.test(name)) continue
        assert.include(published(readDocument(name)), text, `${path}:${line}`)
      }
    }
  })

  it("on other pages are read by a test of their page, or listed", () => {
    const unread = pages.filter((path) => !samplePages.includes(path) && !isReadByTest(path))
    const unlisted = unread.flatMap((path) =>
      blocksOf(readDocument(path))
        .filter((block) => !isDrawing(block) && !(labelOf(block) in (notRun[path] ?? {})))
        .map((block) => `test/docs/notRun.ts lacks ${path}:${block.line}: ${labelOf(block)}`)
    )
    assert.deepEqual(unlisted, [])
  })

  it("that are listed exist and have a reason, which names tests that exist", () => {
    for (const [path, reasons] of Object.entries(notRun)) {
      const labels = blocksOf(readDocument(path)).map(labelOf)
      for (const [label, reason] of Object.entries(reasons)) {
        assert.include(labels, label, path)
        assert.isAtLeast(reason.length, 8, `${path}: ${label}`)
        for (const [test] of reason.matchAll(/\b(?:test|examples|bench)\/[\w/.]+\.ts/gu)) {
          assert.isTrue(existsSync(join(projectFolder, test)), `${path}: ${test}`)
        }
      }
    }
  })
})

describe("links to other hosts", () => {
  const targets = documents.flatMap((path) =>
    [...readDocument(path).matchAll(/(?:\]\(|<)(https?:\/\/[^\s)>]+)/gu)].map(
      ([, target = ""]) => ({ path, host: new URL(target).hostname })
    )
  )
  const outside = targets.filter(({ host }) => host !== "localhost")

  it("lead only to listed hosts", () => {
    const unknown = outside.filter(({ host }) => !(host in externalHosts))
    assert.deepEqual(unknown, [])
  })

  it("use every listed host", () => {
    const used = new Set(outside.map(({ host }) => host))
    assert.sameMembers(Object.keys(externalHosts), [...used])
  })
})
