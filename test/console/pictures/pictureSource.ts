import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"

const root = new URL("../../../", import.meta.url)

/** The hash of what the pictures were made of, written by `npm run pictures`. */
export const madeOf = new URL("test/console/pictures/made-of.txt", root)

/** Everything that a picture shows. The file names in the page change with whatever it loads. */
const shown = [
  "src/http/console/dist/index.html",
  "test/support/consoleData.ts",
  "test/support/contentData.ts",
  "test/support/operatorData.ts"
]

export const pictureSource = (): string => {
  const hash = createHash("sha256")
  for (const file of shown) hash.update(readFileSync(new URL(file, root)))
  return hash.digest("hex")
}
