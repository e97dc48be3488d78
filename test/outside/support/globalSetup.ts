import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

const folder = join(import.meta.dirname, "..")

/** Each package of the folder's package.json has to be there, in the version that it names. */
export default () => {
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  const wanted: Record<string, string> = manifest.dependencies
  const missing = Object.entries(wanted).flatMap(([name, pin]) => {
    const version = /[^@]+$/u.exec(pin)?.[0]
    const file = join(folder, "node_modules", name, "package.json")
    const found = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).version : "nothing"
    return found === version ? [] : [`${name} ${version} (found: ${found})`]
  })
  if (missing.length > 0) {
    throw new Error(`Missing in test/outside: ${missing.join(", ")}. Run: npm run test:outside`)
  }
}
