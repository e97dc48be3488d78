import type { ComponentType } from "preact"
import type { IconName } from "./components/Icon.tsx"
import { texts } from "./texts/en.ts"

export interface PageProps {
  /** The part of the address that matches `:name`. */
  readonly params: Readonly<Record<string, string>>
}

/** The groups of the navigation, in order. */
export const groups = ["home", "operate", "build", "observe", "account"] as const
export type Group = (typeof groups)[number]

export interface Route {
  /** Below `/console`. `:name` matches one path segment. */
  readonly path: string
  readonly title: string
  /** Who may see the page. An operator viewing as a user sees the user's pages. */
  readonly role: "user" | "operator" | "both"
  /** The group in the navigation. Absent: the page is opened from another page. */
  readonly group?: Group
  readonly icon?: IconName
  /** The section of the API documentation about this page. */
  readonly docs?: string
  /** Loads the page, which is a separate chunk. */
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>
}

/** All pages, in navigation order. */
export const routes: ReadonlyArray<Route> = [
  {
    path: "/",
    title: texts.pages.home,
    role: "both",
    group: "home",
    icon: "home",
    load: () => import("./pages/home/HomePage.tsx")
  },
  {
    path: "/users",
    title: texts.pages.users,
    role: "operator",
    group: "operate",
    icon: "user",
    docs: "users",
    load: () => import("./pages/users/UsersPage.tsx")
  },
  {
    path: "/users/:id",
    title: texts.pages.user,
    role: "operator",
    docs: "users",
    load: () => import("./pages/user/UserPage.tsx")
  },
  {
    path: "/accounts",
    title: texts.pages.accounts,
    role: "operator",
    group: "operate",
    icon: "server",
    docs: "vendor-accounts",
    load: () => import("./pages/accounts/AccountsPage.tsx")
  },
  {
    path: "/catalog",
    title: texts.pages.catalog,
    role: "operator",
    group: "operate",
    icon: "tag",
    docs: "catalog",
    load: () => import("./pages/catalog/CatalogPage.tsx")
  },
  {
    path: "/bills",
    title: texts.pages.bills,
    role: "operator",
    group: "operate",
    icon: "page",
    docs: "reconciliations",
    load: () => import("./pages/bills/BillsPage.tsx")
  },
  {
    path: "/playground",
    title: texts.pages.playground,
    role: "user",
    group: "build",
    icon: "spark",
    docs: "models",
    load: () => import("./pages/playground/PlaygroundPage.tsx")
  },
  {
    path: "/models",
    title: texts.pages.models,
    role: "both",
    group: "build",
    icon: "cube",
    docs: "models",
    load: () => import("./pages/models/ModelsPage.tsx")
  },
  {
    path: "/models/:vendor/:model",
    title: texts.pages.model,
    role: "both",
    docs: "models",
    load: () => import("./pages/model/ModelPage.tsx")
  },
  {
    path: "/keys",
    title: texts.pages.keys,
    role: "user",
    group: "build",
    icon: "key",
    docs: "api-keys",
    load: () => import("./pages/keys/KeysPage.tsx")
  },
  {
    path: "/tasks",
    title: texts.pages.tasks,
    role: "both",
    group: "observe",
    icon: "list",
    docs: "tasks",
    load: () => import("./pages/tasks/TasksPage.tsx")
  },
  {
    path: "/tasks/:id",
    title: texts.pages.task,
    role: "user",
    docs: "tasks",
    load: () => import("./pages/task/TaskPage.tsx")
  },
  {
    path: "/gallery",
    title: texts.pages.gallery,
    role: "user",
    group: "observe",
    icon: "pictures",
    docs: "tasks",
    load: () => import("./pages/gallery/GalleryPage.tsx")
  },
  {
    path: "/calls",
    title: texts.pages.calls,
    role: "both",
    group: "observe",
    icon: "arrows",
    docs: "calls",
    load: () => import("./pages/calls/CallsPage.tsx")
  },
  {
    path: "/calls/:id",
    title: texts.pages.call,
    role: "user",
    docs: "calls",
    load: () => import("./pages/call/CallPage.tsx")
  },
  {
    path: "/usage",
    title: texts.pages.usage,
    role: "both",
    group: "observe",
    icon: "bars",
    docs: "usage",
    load: () => import("./pages/usage/UsagePage.tsx")
  },
  {
    path: "/webhooks",
    title: texts.pages.webhooks,
    role: "user",
    group: "observe",
    icon: "send",
    docs: "webhook-endpoints",
    load: () => import("./pages/webhooks/WebhooksPage.tsx")
  },
  {
    path: "/webhooks/deliveries",
    title: texts.pages.deliveries,
    role: "user",
    docs: "webhook-deliveries",
    load: () => import("./pages/deliveries/DeliveriesPage.tsx")
  },
  {
    path: "/webhooks/deliveries/:id",
    title: texts.pages.delivery,
    role: "user",
    docs: "webhook-deliveries",
    load: () => import("./pages/delivery/DeliveryPage.tsx")
  },
  {
    path: "/webhooks/signature",
    title: texts.pages.signature,
    role: "user",
    docs: "webhook-secret",
    load: () => import("./pages/signature/SignaturePage.tsx")
  },
  {
    path: "/wallet",
    title: texts.pages.wallet,
    role: "user",
    group: "account",
    icon: "wallet",
    docs: "wallet",
    load: () => import("./pages/wallet/WalletPage.tsx")
  },
  {
    path: "/open/:id",
    title: texts.pages.open,
    role: "both",
    load: () => import("./pages/open/OpenPage.tsx")
  },
  {
    path: "/sessions",
    title: texts.pages.sessions,
    role: "both",
    group: "account",
    icon: "screen",
    docs: "sessions",
    load: () => import("./pages/sessions/SessionsPage.tsx")
  },
  {
    path: "/audit-log",
    title: texts.pages.audit,
    role: "both",
    group: "account",
    icon: "page",
    docs: "audit",
    load: () => import("./pages/audit/AuditPage.tsx")
  }
]
