import { Clock, Context, DateTime, Effect, Layer, Option, Redacted, Schema, Struct } from "effect"
import { createHash } from "node:crypto"
import { Catalog } from "../../catalog/Catalog.ts"
import { DatabaseClock } from "../../db/DatabaseClock.ts"
import {
  accountForgottenSeconds,
  accountKeepSeconds,
  accountLeftSeconds
} from "../../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { keySchemes, regions } from "../../domain/Provider.ts"
import type { AccountSetting } from "../../domain/Provider.ts"
import { Accounts } from "../../vendors/accounts/Accounts.ts"
import { adapterIn, runsTasks } from "../../vendors/Adapters.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import type { VendorAccount } from "../../vendors/VendorClient.ts"
import type { VendorError } from "../../vendors/VendorError.ts"
import * as Duty from "../heartbeat/Duty.ts"
import { Process, readAfterEach } from "../heartbeat/Process.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { AccountKeyStore } from "./AccountKeyStore.ts"
import type { SealedAccount, StoredAccount } from "./AccountKeyStore.ts"

/**
 * Stores the encrypted keys of accounts that run tasks, so that a job is finished with the key that bought it, even
 * after its account has left the configuration. docs/reference/vendors.md#accounts-that-leave, ADR 0186.
 */
export class AccountKeys extends Context.Service<
  AccountKeys,
  {
    /** The account of a job, by the id in its attempt. It may have left the configuration. */
    readonly ownerOf: (accountId: string) => Effect.Effect<VendorAccount, VendorError>
    /**
     * Accounts that have left this process's configuration, each with the last time at which some process had it
     * configured.
     */
    readonly departed: Effect.Effect<ReadonlyMap<string, DateTime.Utc>, StoreUnavailable>
    /** Whether another process has an account of this adapter in its configuration, and this one does not. */
    readonly isElsewhere: (adapter: string) => Effect.Effect<boolean, StoreUnavailable>
  }
>()("gateway/process/AccountKeys") {
  /** Stores the keys before any task can run, and again at an interval as a duty. ADR 0202 */
  static readonly layer = Layer.effect(
    AccountKeys,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const clock = yield* DatabaseClock
      const secrets = yield* Secrets
      const store = yield* AccountKeyStore
      const vendors = yield* VendorClient
      const { changed, publishChange } = yield* Process
      const accountsChanged = yield* changed("accounts")
      const open = makeOpen(secrets)
      const catalog = yield* Catalog
      const seal = makeSeal(secrets)
      const ids = () => accounts.configured().map(({ id }) => id)
      /** The current accounts, because a catalog reload may add vendors that run tasks. */
      const sealedNow = () =>
        accounts
          .configured()
          .filter(({ provider }) => runsTasks(catalog.current(), provider))
          .map(seal)

      let seen: string | undefined
      /**
       * Reads the stored accounts that this process does not have, and notifies the other processes if they have
       * changed.
       */
      const readOthers = Effect.gen(function* () {
        const others = yield* store.others(ids())
        accounts.setDeparted((yield* Effect.forEach(others, open)).flat())
        const names = others.map(({ id }) => id).join()
        if (seen !== undefined && names !== seen) publishChange("accounts")
        seen = names
        return new Map(others.map(({ configuredAt, id }) => [id, configuredAt]))
      })

      let isIdle = false
      let tendedAt = Number.NEGATIVE_INFINITY
      const tend = Effect.gen(function* () {
        const millis = yield* Clock.currentTimeMillis
        // Neither this process nor any other has stored accounts. Checked rarely, because others may still store some
        if (isIdle && millis - tendedAt < idleMillis) return
        tendedAt = millis
        const now = yield* clock.now
        const sealed = sealedNow()
        if (sealed.length > 0) yield* store.keep(sealed, false, now)
        const known = yield* readOthers
        isIdle = sealed.length === 0 && known.size === 0
        const left = [...known].filter(([, at]) => hasLeft(at, now))
        const draining = accounts
          .configured()
          .filter(accounts.isDraining)
          .map(({ id }) => id)
        const waitedFor = [...left.map(([id]) => id), ...draining]
        if (waitedFor.length > 0) yield* store.leave(waitedFor, yield* DateTime.now)
        if (left.length === 0) return
        yield* store.forget(DateTime.subtract(now, { seconds: accountForgottenSeconds }))
      })

      const atStart = sealedNow()
      if (atStart.length > 0) {
        yield* store.keep(atStart, true, yield* clock.now)
        publishChange("accounts")
      }
      yield* readOthers
      // One of the processes with the same accounts records them for all
      const name = `vendor accounts ${createHash("sha256").update(ids().toSorted().join()).digest("hex").slice(0, 16)}`
      yield* Layer.build(Duty.layer({ name, seconds: accountKeepSeconds }, tend))
      yield* readAfterEach(accountsChanged, readOthers)

      return AccountKeys.of({
        // If the account is unknown, another process may have started to use it in the meantime
        ownerOf: (accountId) =>
          Effect.catch(vendors.owner(accountId), () =>
            Effect.andThen(Effect.ignore(readOthers), vendors.owner(accountId))
          ),
        departed: readOthers,
        isElsewhere: Effect.fnUntraced(function* (adapter) {
          const provider = adapterIn(catalog.current(), adapter)?.provider
          const others = yield* readOthers
          const now = yield* clock.now
          return [...others].some(
            ([id, at]) =>
              !hasLeft(at, now) &&
              Option.exists(accounts.find(id), (account) => account.provider === provider)
          )
        })
      })
    })
  ).pipe(Layer.provide(AccountKeyStore.layer))
}

const idleMillis = 60_000

/** Whether no process has the account in its configuration, which a process last recorded at this time. */
const hasLeft = (configuredAt: DateTime.Utc, now: DateTime.Utc): boolean =>
  DateTime.isLessThan(configuredAt, DateTime.subtract(now, { seconds: accountLeftSeconds }))

/** Part of every plaintext, so that no other ciphertext of the service is accepted in its place. */
const purpose = "vendor account 1"

const Sealed = Schema.fromJsonString(
  Schema.Struct({
    purpose: Schema.Literal(purpose),
    id: Schema.String,
    provider: Schema.String,
    key: Schema.String,
    baseUrl: Schema.String,
    auth: Schema.optionalKey(Schema.Literals(keySchemes)),
    guarded: Schema.optionalKey(Schema.Boolean),
    weight: Schema.Int,
    concurrent: Schema.optionalKey(Schema.Int),
    polls: Schema.optionalKey(Schema.Int),
    region: Schema.optionalKey(Schema.Literals(regions)),
    jwksUrl: Schema.optionalKey(Schema.String)
  } satisfies Record<keyof AccountSetting | "purpose", Schema.Top>)
)
const decode = Schema.decodeUnknownEffect(Sealed)

const encode = ({ key, ...account }: AccountSetting): string =>
  JSON.stringify({ purpose, ...account, key: Redacted.value(key) })

/** Encrypts each account once, so that repeated writes store the same bytes. */
const makeSeal = (secrets: Secrets["Service"]) => {
  const known = new WeakMap<AccountSetting, SealedAccount>()
  return (account: AccountSetting): SealedAccount => {
    const found = known.get(account)
    if (found !== undefined) return found
    const made = { id: account.id, sealed: secrets.encrypt(encode(account)) }
    known.set(account, made)
    return made
  }
}

/** Decrypts a stored account once per version. Returns `[]` if it cannot be decrypted, which is logged once. */
const makeOpen = (secrets: Secrets["Service"]) => {
  const known = new Map<
    string,
    { readonly sealed: string; readonly accounts: ReadonlyArray<AccountSetting> }
  >()
  const read = ({ id, sealed }: StoredAccount) =>
    secrets.decrypt(sealed).pipe(
      Effect.flatMap(decode),
      Effect.filterOrFail((account) => account.id === id),
      Effect.map((account): ReadonlyArray<AccountSetting> => [
        {
          ...Struct.omit(account, ["purpose"]),
          key: Redacted.make(account.key, { label: `${account.provider} key` })
        }
      ]),
      Effect.catch(() =>
        Effect.as(
          Effect.logError(
            `The key of the account ${id}, which left the configuration, cannot be read: its jobs wait. ` +
              "Remedy: restore the previous MASTER_KEY, or the account in the configuration"
          ),
          []
        )
      )
    )
  return (stored: StoredAccount) =>
    Effect.gen(function* () {
      const sealed = Buffer.from(stored.sealed).toString("hex")
      const before = known.get(stored.id)
      if (before?.sealed === sealed) return before.accounts
      const accounts = yield* read(stored)
      known.set(stored.id, { sealed, accounts })
      return accounts
    })
}
