import { Context, Effect } from "effect"
import type { buildConnector, Dispatcher } from "undici"
import { NoResponse } from "./VendorHttp.ts"
import * as VendorHttp from "./VendorHttp.ts"

/**
 * Connects to hosts that a vendor's response names, other than the vendor's own: through the egress guard, which this
 * folder may not import. Without it no such host is called. docs/reference/configuration.md#egress-guard
 */
export const NamedHosts = Context.Reference<Dispatcher | undefined>("gateway/vendors/NamedHosts", {
  defaultValue: () => undefined
})

/**
 * Connects to hosts that a catalog file names as the base of a vendor, also through the egress guard; the argument is
 * the connect timeout in milliseconds. Without it no such host is called.
 */
export const GuardedConnector = Context.Reference<
  (connectTimeoutMillis: number) => buildConnector.connector
>("gateway/vendors/GuardedConnector", { defaultValue: () => () => refuse })

const refuse: buildConnector.connector = (_target, callback) =>
  callback(new Error("no other host is called"), null)

/** Sends to such a host. */
export const sendToNamed = Effect.flatMap(NamedHosts, (dispatcher) =>
  dispatcher === undefined ? Effect.succeed(nowhere) : VendorHttp.make({ dispatcher })
)

const nowhere: VendorHttp.VendorHttp = () =>
  Effect.fail(new NoResponse({ sent: false, message: "no other host is called" }))
