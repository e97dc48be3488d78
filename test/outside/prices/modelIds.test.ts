import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { builtInEntries } from "../../../src/catalog/BuiltInModels.ts"
import { unsoldModels } from "../../../src/catalog/UnsoldModels.ts"
import { makeUpstreamCatalog } from "../../../src/catalog/UpstreamCatalog.ts"

/** The folder of a package. Most packages do not export their package.json. */
const folderOf = (name: string): string => {
  let folder = dirname(createRequire(import.meta.url).resolve(name))
  while (!existsSync(join(folder, "package.json")) || !folder.endsWith(name)) {
    const above = dirname(folder)
    if (above === folder) throw new Error(`${name} is not installed`)
    folder = above
  }
  return folder
}

const read = (name: string, file: string): string =>
  readFileSync(join(folderOf(name), file), "utf8")

/** The string literals of a union type, without those of nested types. */
const literalsOf = (source: string, type: string): ReadonlyArray<string> => {
  const declared = new RegExp(`^(?:export|declare) (?:declare )?type ${type} = ([^;]+);$`, "mu")
  const union = declared.exec(source)?.[1]
  assert.isDefined(union, `the type ${type}`)
  return [...(union ?? "").matchAll(/["']([^"']+)["']/gu)].map(([, literal]) => literal ?? "")
}

/** Models that Google's client mentions only in its examples. */
const exampleId =
  /["'`](?:models\/)?((?:gemini|gemma|imagen|text-embedding|embedding)-[\w.-]*\d[\w.-]*)["'`]/gu

const resources = "resources"
const openAi = (file: string, type: string) =>
  literalsOf(read("openai", join(resources, file)), type)
const genai = read("@google/genai", "dist/genai.d.ts")

/** Model ids by vendor, from the types of the vendors' own clients: text, embedding and image models. */
const ids: Readonly<Record<string, ReadonlySet<string>>> = {
  openai: new Set([
    ...openAi("shared.d.ts", "ChatModel"),
    ...openAi("shared.d.ts", "AllModels"),
    ...openAi("shared.d.ts", "ResponsesModel"),
    ...openAi("embeddings.d.ts", "EmbeddingModel"),
    ...openAi("images.d.ts", "ImageModel")
  ]),
  anthropic: new Set(
    literalsOf(read("@anthropic-ai/sdk", join(resources, "messages/messages.d.ts")), "Model")
  ),
  google: new Set([
    ...literalsOf(genai, "Model_2"),
    ...[...genai.matchAll(exampleId)].map(([, id]) => id ?? "")
  ])
}

const catalog = makeUpstreamCatalog()

describe("the models of the vendors' clients", () => {
  it("are named in the clients' types", () => {
    assert.isAbove(ids["openai"]?.size ?? 0, 100)
    assert.isAbove(ids["anthropic"]?.size ?? 0, 20)
    assert.isAbove(ids["google"]?.size ?? 0, 35)
  })

  for (const [vendor, names] of Object.entries(ids)) {
    it(`each have a price, or a reason why they are not sold: ${vendor}`, () => {
      const missing = [...names].filter(
        (name) =>
          catalog.priced(vendor, name) === undefined && catalog.unsold(vendor, name) === undefined
      )
      assert.deepEqual(missing, [])
    })
  }

  it("do not have both", () => {
    const both = catalog.tokenModels.filter(({ model, vendor }) =>
      unsoldModels.has(`${vendor}/${model}`)
    )
    assert.deepEqual(both, [])
  })

  it("have a replacement that is sold if they end", () => {
    const wrong = catalog.tokenModels.filter(
      ({ replacement, vendor }) =>
        replacement !== undefined && catalog.priced(vendor, replacement) === undefined
    )
    assert.deepEqual(wrong, [])
  })

  it("have a price or a reason if tasks use them for images", () => {
    const upstream = builtInEntries.filter(({ adapter }) => adapter === "gemini-image")
    assert.isAbove(upstream.length, 0)
    for (const { upstreamModel } of upstream) {
      const known =
        catalog.priced("google", upstreamModel) ?? catalog.unsold("google", upstreamModel)
      assert.isDefined(known, upstreamModel)
    }
  })
})
