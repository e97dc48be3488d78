import { globSync, readFileSync } from "node:fs"
import { resolve } from "node:path"
import { assert, describe, it } from "vitest"

const textFiles = globSync("src/console/texts/**/*.ts")

/** docs/console-design.md#words */
const texts = textFiles.map((name) => readFileSync(name, "utf8")).join("\n")

const sources = globSync("src/console/**/*.{ts,tsx}")
  .filter((name) => !textFiles.includes(name))
  .map((name) => readFileSync(name, "utf8").replaceAll(/\/\*\*[^]*?\*\//gu, ""))

interface Member {
  readonly parent: string
  readonly path: string
}

/** The texts in a value, by their path, such as `webhookTexts.delivery.title`. */
const membersOf = (value: unknown, path: string, parent: string): ReadonlyArray<Member> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.entries(value).flatMap(([name, it]) => membersOf(it, `${path}.${name}`, path))
    : [{ parent, path }]

/** The paths of texts that a source uses, also by a name for a part: `const words = webhookTexts.delivery`. */
const usesIn = (source: string): ReadonlyArray<string> => {
  const names = new Map<string, string>()
  const body = source
    .replaceAll(/^import \{([^}]*)\} from "[^"]*"$/gmu, (_, imported: string) => {
      for (const one of imported.split(",")) {
        const [name = "", as = name] = one.trim().split(" as ")
        if (/texts$/iu.test(name)) names.set(as, name)
      }
      return ""
    })
    .replaceAll(
      /const (\w+) = (\w+)((?:\.\w+)*)$/gmu,
      (line, name: string, of: string, path: string) => {
        const whole = names.get(of)
        if (whole === undefined) return line
        names.set(name, `${whole}${path}`)
        return ""
      }
    )
  return [...names].flatMap(([name, whole]) =>
    Array.from(
      body.matchAll(new RegExp(`(?<![\\w.])${name}((?:\\.\\w+)*)`, "gu")),
      ([, path = ""]) => `${whole}${path}`
    )
  )
}

describe("the words of the console", () => {
  it("are those of the field", () => {
    for (const word of [
      "New chat",
      "Refresh",
      "Code",
      "Done",
      "Resets",
      "Released",
      "Non-2xx response",
      "View task",
      "System",
      "/ image"
    ]) {
      assert.include(texts, `"${word}"`)
    }
  })

  it("are no others for the same", () => {
    assert.notMatch(
      texts,
      /begins? anew|read again|by program|have kept it|given back|status of success|"its task|as the system|"an image/iu
    )
  })

  it("are all used", async () => {
    const modules = await Promise.all(textFiles.map((name) => import(resolve(name))))
    const members = modules.flatMap((it) =>
      Object.entries(it).flatMap(([name, value]) => membersOf(value, name, name))
    )
    const used = new Set(sources.flatMap(usesIn))
    // A part as a whole is read by a computed name, such as `words[kind]`
    const unused = members.filter(
      ({ parent, path }) =>
        !used.has(parent) && ![...used].some((it) => it === path || it.startsWith(`${path}.`))
    )
    assert.isAbove(members.length, 500)
    assert.deepStrictEqual(
      unused.map(({ path }) => path),
      []
    )
  })
})
