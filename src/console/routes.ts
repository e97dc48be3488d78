import type { ComponentType } from "preact"
import { texts } from "./texts/en.ts"

export interface PageProps {
  /** What the address has in place of `:name`. */
  readonly params: Readonly<Record<string, string>>
}

export interface Route {
  /** Below `/console`. `:name` is one part of the path. */
  readonly path: string
  readonly title: string
  /** Whose page it is. The operator sees a user's pages when viewing as one. */
  readonly role: "user" | "operator" | "both"
  /** Whether the navigation has it. */
  readonly isInNavigation: boolean
  /** The page, a chunk of its own. */
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>
}

/** All pages, in the order of the navigation. */
export const routes: ReadonlyArray<Route> = [
  {
    path: "/",
    title: texts.pages.home,
    role: "both",
    isInNavigation: true,
    load: () => import("./pages/home/HomePage.tsx")
  },
  {
    path: "/playground",
    title: texts.pages.playground,
    role: "user",
    isInNavigation: true,
    load: () => import("./pages/playground/PlaygroundPage.tsx")
  },
  {
    path: "/tasks",
    title: texts.pages.tasks,
    role: "user",
    isInNavigation: true,
    load: () => import("./pages/tasks/TasksPage.tsx")
  },
  {
    path: "/tasks/:id",
    title: texts.pages.task,
    role: "user",
    isInNavigation: false,
    load: () => import("./pages/task/TaskPage.tsx")
  },
  {
    path: "/calls",
    title: texts.pages.calls,
    role: "user",
    isInNavigation: true,
    load: () => import("./pages/calls/CallsPage.tsx")
  },
  {
    path: "/calls/:id",
    title: texts.pages.call,
    role: "user",
    isInNavigation: false,
    load: () => import("./pages/call/CallPage.tsx")
  },
  {
    path: "/usage",
    title: texts.pages.usage,
    role: "user",
    isInNavigation: true,
    load: () => import("./pages/usage/UsagePage.tsx")
  },
  {
    path: "/keys",
    title: texts.pages.keys,
    role: "user",
    isInNavigation: true,
    load: () => import("./pages/keys/KeysPage.tsx")
  },
  {
    path: "/wallet",
    title: texts.pages.wallet,
    role: "user",
    isInNavigation: true,
    load: () => import("./pages/wallet/WalletPage.tsx")
  },
  {
    path: "/webhooks",
    title: texts.pages.webhooks,
    role: "user",
    isInNavigation: true,
    load: () => import("./pages/webhooks/WebhooksPage.tsx")
  },
  {
    path: "/webhooks/deliveries",
    title: texts.pages.deliveries,
    role: "user",
    isInNavigation: false,
    load: () => import("./pages/deliveries/DeliveriesPage.tsx")
  },
  {
    path: "/webhooks/deliveries/:id",
    title: texts.pages.delivery,
    role: "user",
    isInNavigation: false,
    load: () => import("./pages/delivery/DeliveryPage.tsx")
  },
  {
    path: "/webhooks/signature",
    title: texts.pages.signature,
    role: "user",
    isInNavigation: false,
    load: () => import("./pages/signature/SignaturePage.tsx")
  },
  {
    path: "/models",
    title: texts.pages.models,
    role: "both",
    isInNavigation: true,
    load: () => import("./pages/models/ModelsPage.tsx")
  },
  {
    path: "/models/:vendor/:model",
    title: texts.pages.model,
    role: "both",
    isInNavigation: false,
    load: () => import("./pages/model/ModelPage.tsx")
  },
  {
    path: "/sessions",
    title: texts.pages.sessions,
    role: "both",
    isInNavigation: true,
    load: () => import("./pages/sessions/SessionsPage.tsx")
  },
  {
    path: "/audit-log",
    title: texts.pages.audit,
    role: "both",
    isInNavigation: true,
    load: () => import("./pages/audit/AuditPage.tsx")
  },
  {
    path: "/users",
    title: texts.pages.users,
    role: "operator",
    isInNavigation: true,
    load: () => import("./pages/users/UsersPage.tsx")
  },
  {
    path: "/users/:id",
    title: texts.pages.user,
    role: "operator",
    isInNavigation: false,
    load: () => import("./pages/user/UserPage.tsx")
  },
  {
    path: "/accounts",
    title: texts.pages.accounts,
    role: "operator",
    isInNavigation: true,
    load: () => import("./pages/accounts/AccountsPage.tsx")
  },
  {
    path: "/catalog",
    title: texts.pages.catalog,
    role: "operator",
    isInNavigation: true,
    load: () => import("./pages/catalog/CatalogPage.tsx")
  }
]
