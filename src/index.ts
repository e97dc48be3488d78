/** What developers import: the layers to compose in their own tests, and the receiver's helper. */
export * as Gateway from "./Gateway.ts"
export { AppConfig, ConfigFault } from "./Config.ts"
export { verifyWebhook } from "./delivery/verifyWebhook.ts"
export type {
  ReceivedHeaders,
  VerifyFailure,
  VerifyOptions,
  VerifyResult
} from "./delivery/verifyWebhook.ts"
