import { Context, Effect } from "effect"
import type { buildConnector, Dispatcher } from "undici"
import { NoResponse } from "./VendorHttp.ts"
import * as VendorHttp from "./VendorHttp.ts"

/**
 * Connects to hosts other than the vendor's own that a vendor's response names. Connections go through the egress
 * guard, which this folder may not import. Without this dispatcher no such host is called.
 * docs/reference/configuration.md#egress-guard
 */
export const NamedHosts = Context.Reference<Dispatcher | undefined>("gateway/vendors/NamedHosts", {
  defaultValue: () => undefined
})

/**
 * Connects, also through the egress guard, to hosts that a catalog file names as the base of a vendor. The argument is
 * the connect timeout in milliseconds. Without this connector no such host is called.
 */
export const GuardedConnector = Context.Reference<
  (connectTimeoutMillis: number) => buildConnector.connector
>("gateway/vendors/GuardedConnector", { defaultValue: () => () => refuse })

const refuse: buildConnector.connector = (_target, callback) =>
  callback(new Error("no other host is called"), null)

/** Sends to a host that a vendor's response names. */
export const sendToNamed = Effect.flatMap(NamedHosts, (dispatcher) =>
  dispatcher === undefined ? Effect.succeed(nowhere) : VendorHttp.make({ dispatcher })
)

const nowhere: VendorHttp.VendorHttp = () =>
  Effect.fail(new NoResponse({ sent: false, message: "no other host is called" }))
