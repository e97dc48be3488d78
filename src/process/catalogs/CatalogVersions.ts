import { Context, DateTime, Effect, Layer, Option, Result } from "effect"
import { Catalog } from "../../catalog/Catalog.ts"
import { makeVersion, readStored } from "../../catalog/CatalogContent.ts"
import type { CatalogVersion } from "../../catalog/CatalogContent.ts"
import { differenceOf } from "../../catalog/CatalogDifference.ts"
import type { CatalogDifference } from "../../catalog/CatalogDifference.ts"
import type { CatalogError } from "../../catalog/CatalogSource.ts"
import { AppConfig } from "../../config/Config.ts"
import { DatabaseClock } from "../../db/DatabaseClock.ts"
import { catalogsKeptMax, ownerDeadSeconds } from "../../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { Accounts } from "../../vendors/accounts/Accounts.ts"
import { Process, readAfterEach } from "../heartbeat/Process.ts"
import { CatalogStore } from "./CatalogStore.ts"
import type { Adoption, StoredCatalog } from "./CatalogStore.ts"

/** A catalog and when it was last adopted; null if never. */
export interface AdoptedCatalog {
  readonly version: CatalogVersion
  readonly adoptedAt: DateTime.Utc | null
}

export interface Reload {
  readonly hash: string
  readonly previousHash: string
  /** False in a dry run, or if the catalog was already adopted. */
  readonly adopted: boolean
  readonly difference: CatalogDifference
}

/** The adopted catalog, which is the same in all processes, and the catalogs adopted before. docs/catalog.md#reload */
export class CatalogVersions extends Context.Service<
  CatalogVersions,
  {
    /**
     * Reads `CATALOG_FILE` and makes all processes adopt it. If the file has any fault, the adopted catalog stays.
     * `dryRun` only reports what would change.
     */
    readonly reload: (dryRun: boolean) => Effect.Effect<Reload, CatalogError | StoreUnavailable>
    /**
     * The catalog with which a task was accepted, by its id; `null` means the adopted one. This and the next two return
     * `None` if the catalog does not exist or this release cannot read it, which is logged.
     */
    readonly withId: (
      id: number | null
    ) => Effect.Effect<Option.Option<CatalogVersion>, StoreUnavailable>
    readonly withHash: (
      hash: string
    ) => Effect.Effect<Option.Option<AdoptedCatalog>, StoreUnavailable>
    /** The catalog that was adopted at a time. */
    readonly at: (
      time: DateTime.Utc
    ) => Effect.Effect<Option.Option<AdoptedCatalog>, StoreUnavailable>
    readonly current: () => AdoptedCatalog
  }
>()("gateway/process/CatalogVersions") {
  /** Adopts the process's catalog at startup, and follows adoptions by other processes. */
  static readonly layer = Layer.effect(
    CatalogVersions,
    Effect.gen(function* () {
      const catalog = yield* Catalog
      const store = yield* CatalogStore
      const { accountsWith, database } = yield* AppConfig
      const { changed, id: processId, publishChange } = yield* Process
      const catalogChanged = yield* changed("catalog")
      const clock = yield* DatabaseClock
      const adopted = yield* makeAdopted

      const reload = Effect.fn("CatalogVersions.reload")(function* (dryRun: boolean) {
        const next = yield* catalog.read
        const { providers } = next.content
        yield* Effect.mapError(accountsWith(providers), ({ message: detail }) =>
          catalog.faulty([{ pointer: "#/vendors", detail }])
        )
        // Compares with the adopted catalog, which may be newer than the one this process has seen
        yield* adopted.refresh
        const before = catalog.current()
        const difference = differenceOf(before.content, next.content)
        const isSame = next.hash === before.hash
        if (!dryRun) {
          const now = yield* clock.now
          const request = { catalog: next, processId, isStart: false, aliveSince: now, now }
          yield* adopted.become(yield* store.adopt(request))
          publishChange("catalog")
        }
        return {
          hash: next.hash,
          previousHash: before.hash,
          adopted: !dryRun && !isSame,
          difference
        }
      })

      // An embedded store has only one process
      if (database._tag === "Postgres") {
        yield* readAfterEach(catalogChanged, adopted.refresh)
      }

      return CatalogVersions.of({
        reload: (dryRun) => Effect.uninterruptible(reload(dryRun)),
        current: () => ({ version: catalog.current(), adoptedAt: adopted.since() }),
        ...(yield* makeEarlier)
      })
    })
  ).pipe(Layer.provide(CatalogStore.layer))
}

/**
 * Parses a stored catalog. `told` contains the hashes whose fault was already logged, because a job with an unreadable
 * catalog asks for it every minute.
 */
const versionOf = Effect.fnUntraced(function* (
  { hash, id, text }: StoredCatalog,
  told = new Set<string>()
) {
  const read = readStored(hash, text)
  if (Result.isSuccess(read)) {
    told.delete(hash)
    return Option.some(makeVersion(read.success, id))
  }
  if (told.has(hash)) return Option.none<CatalogVersion>()
  told.add(hash)
  yield* Effect.logError(
    `The catalog ${hash} cannot be used: ${read.failure}. Remedy: run the same release everywhere`
  )
  return Option.none<CatalogVersion>()
})

/** Follows the adoptions in the store, including this process's own. */
const makeAdopted = Effect.gen(function* () {
  const accounts = yield* Accounts
  const { accountsWith } = yield* AppConfig
  const catalog = yield* Catalog
  const store = yield* CatalogStore
  const { id: processId, publishChange } = yield* Process
  // The clock of heartbeats, with which all processes date adoptions. ADR 0176
  const now = yield* (yield* DatabaseClock).now
  let known = 0
  let since = now

  /** Switches to an adopted catalog. One that this release cannot read is skipped and logged once. */
  const become = Effect.fnUntraced(function* (adoption: Adoption) {
    const { adoption: number, adoptedAt, catalog: id, hash, text } = adoption
    if (number <= known) return
    known = number
    const before = catalog.current()
    if (hash === before.hash && id === before.id) {
      since = adoptedAt
      return
    }
    const next =
      hash === before.hash
        ? Option.some(makeVersion(before, id))
        : yield* versionOf({ id, hash, text: text ?? "", adoptedAt })
    if (Option.isNone(next)) return
    const configured = yield* Effect.result(accountsWith(next.value.content.providers))
    if (Result.isFailure(configured)) {
      return yield* Effect.logError(
        `The catalog ${hash} is not adopted: ${configured.failure.message}`
      )
    }
    accounts.setConfigured(configured.success)
    catalog.replace(next.value)
    since = adoptedAt
    if (hash !== before.hash) yield* Effect.logInfo(`Adopted the catalog ${hash}`)
  })

  const own = catalog.current()
  const aliveSince = DateTime.subtract(now, { seconds: ownerDeadSeconds })
  const latest = yield* store.adopt({ catalog: own, processId, isStart: true, aliveSince, now })
  if (latest.hash !== own.hash) {
    yield* Effect.logWarning(
      `CATALOG_FILE of this process has a catalog that was replaced: the catalog ${latest.hash}, which the other ` +
        "processes have, is kept. Remedy: give all processes the same file, or reload"
    )
    // Used until the adopted catalog has been read, and permanently if that is unreadable
    const stored = yield* store.byHash(own.hash)
    catalog.replace(
      makeVersion(own, Option.match(stored, { onNone: () => null, onSome: ({ id }) => id }))
    )
  }
  yield* become(latest)
  publishChange("catalog")

  return {
    become,
    refresh: Effect.flatMap(
      Effect.suspend(() => store.latest(known)),
      Option.match({ onNone: () => Effect.void, onSome: become })
    ),
    since: () => since
  }
})

/** Reads catalogs that were adopted before, and caches the most recently used. */
const makeEarlier = Effect.gen(function* () {
  const catalog = yield* Catalog
  const store = yield* CatalogStore
  const kept = new Map<number, CatalogVersion>()
  const unreadable = new Set<string>()

  const keep = (version: CatalogVersion): CatalogVersion => {
    if (version.id === null) return version
    kept.delete(version.id)
    kept.set(version.id, version)
    const [oldest] = kept.keys()
    if (kept.size > catalogsKeptMax && oldest !== undefined) kept.delete(oldest)
    return version
  }
  const known = (is: (version: CatalogVersion) => boolean): CatalogVersion | undefined =>
    [catalog.current(), ...kept.values()].find(is)

  const read = (stored: StoredCatalog) => {
    const found = known(({ id }) => id === stored.id)
    return found === undefined
      ? Effect.map(versionOf(stored, unreadable), Option.map(keep))
      : Effect.succeedSome(found)
  }
  const readSome = (found: Option.Option<StoredCatalog>) =>
    Option.match(found, { onNone: () => Effect.succeedNone, onSome: read })

  const adopted = Effect.fnUntraced(function* (
    find: Effect.Effect<Option.Option<StoredCatalog>, StoreUnavailable>
  ) {
    const stored = yield* find
    const version = yield* readSome(stored)
    return Option.zipWith(stored, version, ({ adoptedAt }, version) => ({ version, adoptedAt }))
  })

  return {
    withId: (id: number | null) =>
      Effect.suspend(() => {
        if (id === null) return Effect.succeedSome(catalog.current())
        const found = known((version) => version.id === id)
        return found === undefined
          ? Effect.flatMap(store.byId(id), readSome)
          : Effect.succeedSome(found)
      }),
    withHash: (hash: string) => adopted(store.byHash(hash)),
    at: (time: DateTime.Utc) => adopted(store.at(time))
  }
})
