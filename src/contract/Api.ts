import { HttpApi } from "effect/http-api"
import { bodyParseOptions } from "../catalog/FieldFaults.ts"
import { ManageGate, ManageProblems } from "./Access.ts"
import { AccountsApi } from "./manage/AccountsApi.ts"
import { ApiKeysApi } from "./manage/ApiKeysApi.ts"
import { AuditApi } from "./manage/AuditApi.ts"
import { BillsApi } from "./manage/BillsApi.ts"
import { CallsApi } from "./manage/CallsApi.ts"
import { CatalogApi } from "./manage/CatalogApi.ts"
import { EventsApi } from "./manage/EventsApi.ts"
import { OperatorApi } from "./manage/OperatorApi.ts"
import { PrivacyApi } from "./manage/PrivacyApi.ts"
import { QueuesApi } from "./manage/QueuesApi.ts"
import { SessionsApi } from "./manage/SessionsApi.ts"
import { UsageApi } from "./manage/UsageApi.ts"
import { UsersApi } from "./manage/UsersApi.ts"
import { WalletApi } from "./manage/WalletApi.ts"
import { WebhookDeliveriesApi } from "./manage/WebhookDeliveriesApi.ts"
import { WebhookEndpointsApi } from "./manage/WebhookEndpointsApi.ts"
import { WebhookSecretApi } from "./manage/WebhookSecretApi.ts"
import { ModelsApi } from "./ModelsApi.ts"
import { SignInApi } from "./SignInApi.ts"
import { TasksApi } from "./TasksApi.ts"

/** The management API. docs/reference/http.md#management-api */
export class Api extends HttpApi.make("manage")
  .add(UsersApi)
  .add(ApiKeysApi)
  .add(WalletApi)
  .add(CallsApi)
  .add(UsageApi)
  .add(BillsApi)
  .add(WebhookEndpointsApi)
  .add(WebhookSecretApi)
  .add(TasksApi)
  .add(ModelsApi)
  .add(CatalogApi)
  .add(AccountsApi)
  .add(WebhookDeliveriesApi)
  .add(AuditApi)
  .add(PrivacyApi)
  .add(QueuesApi)
  .add(OperatorApi)
  .add(SessionsApi)
  .add(EventsApi)
  .middleware(ManageGate)
  // A client that signs in is not authenticated yet
  .add(SignInApi)
  .prefix("/manage/v1")
  .middleware(ManageProblems)
  .annotate(HttpApi.PayloadParseOptions, bodyParseOptions)
  .annotate(HttpApi.QueryParseOptions, bodyParseOptions) {}
