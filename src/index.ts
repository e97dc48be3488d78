/** What developers import: the layers to compose in their own tests, and the receiver's helper. */
export * as Gateway from "./Gateway.ts"
export { AppConfig, ConfigFault } from "./Config.ts"
export { WebhookSenderLog } from "./delivery/WebhookSender.ts"
export { TestGateway } from "./testing/TestGateway.ts"
export { MockVendor } from "./vendors/mock/MockVendor.ts"
export type { MockStep } from "./vendors/mock/MockVendor.ts"
export { verifyWebhook } from "./delivery/verifyWebhook.ts"
export type {
  ReceivedHeaders,
  VerifyFailure,
  VerifyOptions,
  VerifyResult
} from "./delivery/verifyWebhook.ts"
