import { Clock, Context, Effect, Layer, Option, Result } from "effect"
import { invalid } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { AccountSetting, Provider } from "../domain/Provider.ts"
import { Accounts } from "../vendors/accounts/Accounts.ts"
import type { UpstreamRequest } from "../vendors/upstream/UpstreamExchange.ts"
import { AffinityStore } from "./AffinityStore.ts"
import { keptStateOf } from "./KeptState.ts"
import type { KeptState } from "./KeptState.ts"

/** The most keys whose account one process remembers. */
const cachedMax = 10_000

/**
 * Selects the account for calls that depend on data stored at accounts. All such calls of a key go to one account per
 * provider, which the store remembers. docs/reference/passthrough.md#what-accounts-keep
 */
export class AccountAffinity extends Context.Service<
  AccountAffinity,
  {
    /** The accounts that may serve a call; `undefined` for all. Reads nothing if the provider has a single account. */
    readonly accountsFor: (
      provider: Provider,
      request: UpstreamRequest
    ) => Effect.Effect<ReadonlyArray<AccountSetting> | undefined, Problem | StoreUnavailable>
  }
>()("gateway/passthrough/AccountAffinity") {
  static readonly layer = Layer.effect(
    AccountAffinity,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const store = yield* AffinityStore
      const cache = new Map<string, ReadonlyArray<AccountSetting>>()

      const ask = Effect.fnUntraced(function* (
        provider: Provider,
        request: UpstreamRequest,
        state: KeptState
      ) {
        if (state._tag === "Elsewhere") return yield* unknownAccount(state.pointer)
        const ids = accounts.idsOf(provider)
        const order = accounts.order(provider, request, yield* Clock.currentTimeMillis)
        const next = Result.isSuccess(order) ? order.success[0]?.id : ids[0]
        const { key, route, user } = request
        const bound = yield* store.bind({
          user,
          key,
          provider,
          vendor: route.vendor,
          accounts: ids,
          candidate: state._tag === "Names" ? undefined : next
        })
        const account = Option.flatMap(bound, (id) => accounts.find(id))
        if (Option.isNone(account)) {
          return yield* unknownAccount(state._tag === "Names" ? state.pointer : "#")
        }
        const among = [account.value]
        if (cache.size >= cachedMax) cache.clear()
        cache.set(`${provider} ${key}`, among)
        return among
      })

      return AccountAffinity.of({
        accountsFor: (provider, request) => {
          if (accounts.idsOf(provider).length < 2) return anyAccount
          const state = keptStateOf(request.route, request.body)
          if (state._tag === "Nothing") return anyAccount
          const among = cache.get(`${provider} ${request.key}`)
          return among === undefined || state._tag === "Elsewhere"
            ? ask(provider, request, state)
            : Effect.succeed(among)
        }
      })
    })
  )
}

const anyAccount = Effect.succeed(undefined)

const unknownAccount = (pointer: string): Problem =>
  invalid([
    {
      pointer,
      detail:
        "This is stored at one of several accounts with the vendor, and it is unknown at which: send the content itself"
    }
  ])
