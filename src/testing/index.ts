/** The gateway in the process of a test. docs/developing.md#test-layers */
export { layerTest } from "./layerTest.ts"
export type { Receiver, TestOptions } from "./layerTest.ts"
export { startTestGateway } from "./startTestGateway.ts"
export type { StartedTestGateway } from "./startTestGateway.ts"
export { TestGateway } from "./TestGateway.ts"
export type { QuietOptions } from "./TestGateway.ts"
export type {
  ListenOptions,
  ReceivedOptions,
  ReceivedWebhook,
  TestWebhooks,
  WebhookEvent
} from "./TestWebhooks.ts"
export type { Absence, Failure } from "./Failures.ts"
export { mockOutcome, WebhookSenderLog } from "../webhooks/WebhookSender.ts"
export type { SentRequest, WebhookRequest } from "../webhooks/WebhookSender.ts"
export type { AttemptOutcome } from "../domain/Webhook.ts"
export { MockVendor } from "../vendors/mock/MockVendor.ts"
export type { MockRefusal, MockScript, MockStep, MockSteps } from "../vendors/mock/MockScript.ts"
export { startVendorServer } from "./vendors/VendorServer.ts"
export type {
  DescribedVendor,
  RequestKind,
  VendorName,
  VendorServer
} from "./vendors/VendorServer.ts"
export type { VendorServerOptions } from "./vendors/ScriptedVendor.ts"
export type { FormPart, VendorRequest } from "./vendors/VendorRequest.ts"
