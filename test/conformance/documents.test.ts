import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Catalog } from "../../src/catalog/Catalog.ts"
import { builtInProviders, variableOf } from "../../src/domain/Provider.ts"
import { documents } from "../support/samples/documents.ts"
import { temporaryFolder } from "../support/temporaryFolder.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), "utf8")
const manifest = JSON.parse(read("package.json")) as Readonly<
  Record<
    "dependencies" | "devDependencies" | "peerDependencies" | "scripts",
    Readonly<Record<string, string>>
  >
> & { readonly version: string }

const configuration = read("docs/reference/configuration.md")
/** The text under a heading, up to the next heading of the same level. */
const section = (text: string, heading: string): string =>
  text.split(/^## /mu).find((part) => part.startsWith(`${heading}\n`)) ?? ""

/** The first cells of the rows of all tables in a text. */
const firstCells = (text: string): ReadonlyArray<string> =>
  text
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("|---"))
    .map((line) => line.split("|")[1] ?? "")

/** The texts in backticks, without code blocks. */
const quoted = (text: string): ReadonlyArray<string> =>
  [...text.replaceAll(/^```[\s\S]*?^```/gmu, "").matchAll(/`([^`\n]+)`/gu)].map(
    ([, inner = ""]) => inner
  )

const providers = new Set<string>(builtInProviders.map(({ name }) => variableOf(name)))

/** `OPENAI_API_KEY` appears as `…_API_KEY` in the code and in the table. */
const family = (name: string): string => {
  const [, provider = "", rest = ""] = /^([A-Z]+)(_API_KEY|_BASE_URL)$/u.exec(name) ?? []
  return providers.has(provider) ? `…${rest}` : name
}

describe("docs/reference/configuration.md", () => {
  it("lists exactly the variables that the configuration reads", () => {
    const code = readdirSync(join(root, "src/config"))
      .map((name) => read(`src/config/${name}`))
      .join("\n")
    const inCode = new Set<string>()
    for (const [, name = ""] of code.matchAll(/"([A-Z][A-Z0-9_]{3,})"/gu)) inCode.add(name)
    for (const [, rest = ""] of code.matchAll(/`\$\{variable\}(_[A-Z_]+)`/gu))
      inCode.add(`…${rest}`)
    const inTable = new Set(
      firstCells(section(configuration, "Variables")).flatMap(quoted).map(family)
    )
    assert.deepEqual([...inTable].sort(), [...inCode].sort())
  })

  it("names the variable of every provider's key", () => {
    for (const provider of providers) assert.include(configuration, `\`${provider}_API_KEY\``)
  })
})

describe("docs/dependencies.md", () => {
  it("lists exactly the dependencies, each with a reason", () => {
    const rows = section(read("docs/dependencies.md"), "Packages")
      .split("\n")
      .filter((line) => line.startsWith("| `"))
    for (const row of rows) assert.match(row.split("|")[2] ?? "", /\w{3,}/u, row)
    const names = rows.flatMap((row) => quoted(row.split("|")[1] ?? ""))
    const { dependencies, devDependencies, peerDependencies } = manifest
    const wanted = new Set([dependencies, devDependencies, peerDependencies].flatMap(Object.keys))
    assert.deepEqual([...names].sort(), [...wanted].sort())
  })
})

describe("the example of docs/catalog.md", () => {
  it.effect("is accepted as CATALOG_FILE", () =>
    Effect.gen(function* () {
      const json =
        /```json\n([\s\S]*?)```/u.exec(section(read("docs/catalog.md"), "Catalog file"))?.[1] ?? ""
      const folder = temporaryFolder("catalog")
      const file = join(folder, "catalog.json")
      writeFileSync(file, json)
      const catalog = yield* Catalog.pipe(
        Effect.provide(Catalog.layerFile(file)),
        Effect.ensuring(Effect.sync(() => rmSync(folder, { recursive: true })))
      )
      const models = catalog.current().all.map(({ model, vendor }) => `${vendor}/${model}`)
      assert.include(models, "fal/flux-dev")
      assert.notInclude(models, "alibaba/video-edit-plus")
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("every guide", () => {
  for (const guide of documents) {
    const text = read(guide)
    const folder = guide.includes("/") ? guide.slice(0, guide.lastIndexOf("/")) : ""

    it(`${guide} names files that exist`, () => {
      const links = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/gu)].map(([, to = ""]) =>
        join(folder, to)
      )
      const paths = quoted(text)
        .filter((it) =>
          // `tasks/get` is a method of MCP
          /^(?!tasks\/(?:get|update|cancel)$)(?:\.ci|src|test|docs|bench|deploy|examples|schema|config|domain|catalog|db|egress|vendors|sandbox|process|users|wallet|artifacts|webhooks|tasks|passthrough|http|testing|cli)\/[\w./-]+$/u.test(
            it
          )
        )
        .map((it) => (existsSync(join(root, it)) ? it : `src/${it}`))
      for (const path of [...links, ...paths]) {
        assert.isTrue(existsSync(join(root, path)), `${guide}: ${path}`)
      }
    })

    it(`${guide} names npm scripts that exist`, () => {
      for (const [, name = ""] of text.matchAll(/npm run (?:--silent )?([\w:]+)/gu)) {
        assert.property(manifest.scripts, name, guide)
      }
      for (const [, name = ""] of text.matchAll(/deno task (\w+)/gu)) {
        assert.property(JSON.parse(read("deno.json")).tasks, name, guide)
      }
      for (const [, path = ""] of text.matchAll(/node ((?:bench|src)\/[\w/]+\.ts)/gu)) {
        assert.isTrue(existsSync(join(root, path)), `${guide}: ${path}`)
      }
    })
  }

  it("names routes that the service has", () => {
    const { paths } = JSON.parse(read("schema/openapi.json")) as { paths: object }
    const known = Object.keys(paths).map((path) => path.replaceAll(/\{\w+\}/gu, "{id}"))
    for (const guide of documents) {
      for (const [path] of read(guide).matchAll(/\/manage\/v1\/[\w/{}$-]+/gu)) {
        assert.include(known, path.replaceAll(/\{\w+\}|\$\w*/gu, "{id}"), guide)
      }
    }
  })
})

describe("ARCHITECTURE.md", () => {
  it("lists exactly the tables of the schema", () => {
    const sql = readdirSync(join(root, "schema/migrations"))
      .sort()
      .map((name) => read(`schema/migrations/${name}`))
      .join("\n")
    const made = [...sql.matchAll(/^create (?:unlogged )?table (\w+) \(/gmu)].map(
      ([, name = ""]) => name
    )
    const tables = new Set(made)
    for (const [, name = ""] of sql.matchAll(/^drop table (\w+)/gmu)) tables.delete(name)
    // Created by the program that applies the files
    tables.add("schema_migrations").add("schema_functions")
    const documented = firstCells(section(read("ARCHITECTURE.md"), "Tables")).flatMap(quoted)
    assert.deepEqual([...documented].sort(), [...tables].sort())
  })
})

describe("docs/adr", () => {
  const names = readdirSync(join(root, "docs/adr")).filter((name) => name !== "README.md")

  it("numbers each decision once, in the file's name and in its title", () => {
    const numbers = names.map((name) => /^(\d{4})-[a-z0-9-]+\.md$/u.exec(name)?.[1])
    assert.strictEqual(new Set(numbers).size, names.length)
    for (const name of names) {
      const title = read(`docs/adr/${name}`).split("\n", 1)[0] ?? ""
      assert.strictEqual(
        Number(/^# (\d+)[.:]? \S/u.exec(title)?.[1]),
        Number(name.slice(0, 4)),
        name
      )
    }
  })

  it("has every decision that the code and the documents cite", () => {
    const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => `src/${name}`)
    for (const file of [...files, ...documents]) {
      for (const [, number = ""] of read(file).matchAll(/ADR (\d{4})/gu)) {
        assert.isTrue(
          names.some((name) => name.startsWith(`${number}-`)),
          `${file}: ADR ${number}`
        )
      }
    }
  })
})

describe("/openapi.json", () => {
  it("has the version of package.json", () => {
    assert.strictEqual(JSON.parse(read("schema/openapi.json")).info.version, manifest.version)
  })
})
