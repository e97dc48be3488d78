import { Context, Effect, FileSystem, Layer } from "effect"
import { makeVersion } from "./CatalogContent.ts"
import type { CatalogVersion, HashedContent } from "./CatalogContent.ts"
import { builtIn, CatalogError, readFile } from "./CatalogSource.ts"

/** Vendors, models, upstream models and prices. docs/catalog.md */
export class Catalog extends Context.Service<
  Catalog,
  {
    /** The catalog in force. Read once per request, so that a request uses one catalog from end to end. */
    readonly current: () => CatalogVersion
    readonly replace: (version: CatalogVersion) => void
    /** Reads `CATALOG_FILE`, or returns the built-in catalog. Does not change the catalog in force. */
    readonly read: Effect.Effect<HashedContent, CatalogError>
    /** Builds the error for faults of the file that only other modules can detect. */
    readonly faulty: (errors: CatalogError["errors"]) => CatalogError
  }
>()("gateway/catalog/Catalog") {
  /** The built-in catalog. */
  static readonly layer = Layer.sync(this, () => make(builtIn, Effect.succeed(builtIn), ""))

  /** The built-in catalog as changed by a JSON file. */
  static readonly layerFile = (path: string) =>
    Layer.effect(
      this,
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const read = Effect.provideService(readFile(path), FileSystem.FileSystem, files)
        return make(yield* read, read, path)
      })
    )
}

const make = (
  first: HashedContent,
  read: Effect.Effect<HashedContent, CatalogError>,
  file: string
): Catalog["Service"] => {
  let version = makeVersion(first, null)
  return {
    current: () => version,
    replace: (next) => {
      version = next
    },
    read,
    faulty: (errors) => new CatalogError({ file, errors })
  }
}
