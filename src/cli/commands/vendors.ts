import { Effect, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Catalog } from "../../catalog/Catalog.ts"
import { AppConfig } from "../../config/Config.ts"
import { Accounts } from "../../vendors/accounts/Accounts.ts"
import { adapterIn } from "../../vendors/Adapters.ts"
import { GuardedConnector } from "../../vendors/NamedHosts.ts"
import * as VendorHttp from "../../vendors/VendorHttp.ts"
import { orderOf, report, runJob } from "../DescribedRun.ts"
import { vendorTools } from "../doctor/Doctor.ts"
import { CommandFault, failed } from "../terminal/Fault.ts"
import { decodeBody } from "./checkModel.ts"

/** The vendor's first media model, or the one with this name, and an account that has the key for it. */
const chosen = Effect.fnUntraced(function* (vendor: string, model: Option.Option<string>) {
  const catalog = (yield* Catalog).current()
  const models = catalog.all.filter((it) => it.vendor === vendor)
  const entry = models.find((it) => Option.isNone(model) || it.model === model.value)
  const adapter = entry && adapterIn(catalog, entry.adapter)
  if (entry === undefined || adapter === undefined) {
    const names = models.map((it) => it.model).join(", ")
    return yield* names === ""
      ? failed(`${vendor} has no media models`, "Open it in CATALOG_FILE")
      : failed(`${vendor} has no such model`, `Name one of ${names}`)
  }
  const account = (yield* Accounts)
    .configured()
    .find(
      (it) =>
        it.provider === adapter.provider && adapter.hasModel?.(it, entry.upstreamModel) !== false
    )
  return account === undefined
    ? yield* failed(`${vendor} has no key: it is played by the sandbox`, "Set its key")
    : { account, adapter, entry }
})

const test = Command.make(
  "test",
  {
    vendor: Argument.String("vendor").pipe(
      Argument.withDescription("The vendor in the paths of its models")
    ),
    model: Flag.String("model").pipe(
      Flag.withDescription("its model; default: its first one"),
      Flag.optional
    ),
    body: Flag.String("body").pipe(
      Flag.withDescription("the JSON body of a create"),
      Flag.withDefault('{"prompt":"A lighthouse at dawn"}')
    )
  },
  Effect.fnUntraced(
    function* ({ body, model, vendor }) {
      const { account, adapter, entry } = yield* chosen(vendor, model)
      const value = yield* Effect.mapError(decodeBody(body), () =>
        failed("The body is not JSON", 'Pass one as --body \'{"prompt":"…"}\'')
      )
      const order = yield* orderOf(entry, value, crypto.randomUUID())
      const connector = (yield* GuardedConnector)(VendorHttp.connectMillis)
      const toNamed = yield* VendorHttp.make({ connector })
      const http = account.guarded === true ? toNamed : yield* VendorHttp.make()
      const result = yield* Effect.mapError(
        runJob({ account, adapter, http, toNamed }, entry, order),
        (error) => failed(`${error.class}: ${error.message}`, "Correct the key or the description")
      )
      yield* report(order, result, { model: `${vendor}/${entry.model}`, account: account.id })
    },
    Effect.scoped,
    Effect.provide(Layer.provideMerge(vendorTools, AppConfig.layer)),
    Effect.catchTag(["CatalogError", "ConfigFault"], ({ message }) =>
      Effect.fail(new CommandFault({ message }))
    )
  )
).pipe(
  Command.withDescription(
    "Make one real call with the vendor's key, which the vendor charges; show its requests and its price"
  )
)

/** docs/vendors-as-files.md#go-live */
export const vendors = Command.make("vendors").pipe(
  Command.withDescription("Vendors of media"),
  Command.withSubcommands([test])
)
