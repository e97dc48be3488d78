/** The public API: layers for tests of other projects, and the verification of webhooks. */
export * as Gateway from "./Gateway.ts"
export { AppConfig, ConfigFault } from "./config/Config.ts"
export { WebhookSenderLog } from "./webhooks/WebhookSender.ts"
export { TestGateway } from "./testing/TestGateway.ts"
export { MockVendor } from "./vendors/mock/MockVendor.ts"
export type { MockStep } from "./vendors/mock/MockVendor.ts"
export { verifyWebhook } from "./webhooks/verifyWebhook.ts"
export type {
  ReceivedHeaders,
  VerifyFailure,
  VerifyOptions,
  VerifyResult
} from "./webhooks/verifyWebhook.ts"
