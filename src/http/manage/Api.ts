import { HttpApi, OpenApi } from "effect/http-api"
import { bodyParseOptions } from "../../catalog/FieldFaults.ts"
import { version } from "../../domain/Version.ts"
import { CatalogApi } from "./catalog/CatalogApi.ts"
import { ModelsApi } from "./catalog/ModelsApi.ts"
import { ManageGate, ManageProblems } from "./ManageGate.ts"
import { AccountsApi } from "./operator/AccountsApi.ts"
import { AuditApi } from "./operator/AuditApi.ts"
import { BillsApi } from "./operator/BillsApi.ts"
import { QueuesApi } from "./operator/QueuesApi.ts"
import { CallsApi } from "./tasks/CallsApi.ts"
import { EventsApi } from "./tasks/EventsApi.ts"
import { TasksApi } from "./tasks/TasksApi.ts"
import { ApiKeysApi } from "./users/ApiKeysApi.ts"
import { PrivacyApi } from "./users/PrivacyApi.ts"
import { SessionsApi } from "./users/SessionsApi.ts"
import { SignInApi } from "./users/SignInApi.ts"
import { UsersApi } from "./users/UsersApi.ts"
import { UsageApi } from "./wallet/UsageApi.ts"
import { WalletApi } from "./wallet/WalletApi.ts"
import { WebhookDeliveriesApi } from "./webhooks/WebhookDeliveriesApi.ts"
import { WebhookEndpointsApi } from "./webhooks/WebhookEndpointsApi.ts"

/** The management API. docs/reference/http.md#management-api */
export class Api extends HttpApi.make("manage")
  .add(UsersApi)
  .add(ApiKeysApi)
  .add(WalletApi)
  .add(CallsApi)
  .add(UsageApi)
  .add(BillsApi)
  .add(WebhookEndpointsApi)
  .add(TasksApi)
  .add(ModelsApi)
  .add(CatalogApi)
  .add(AccountsApi)
  .add(WebhookDeliveriesApi)
  .add(AuditApi)
  .add(PrivacyApi)
  .add(QueuesApi)
  .add(SessionsApi)
  .add(EventsApi)
  .middleware(ManageGate)
  // Who signs in is nobody yet
  .add(SignInApi)
  .prefix("/manage/v1")
  .middleware(ManageProblems)
  .annotate(HttpApi.PayloadParseOptions, bodyParseOptions)
  .annotate(HttpApi.QueryParseOptions, bodyParseOptions)
  .annotateMerge(OpenApi.annotations({ title: "Generation Gateway", version })) {}
