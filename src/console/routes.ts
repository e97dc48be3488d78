import type { ComponentType } from "preact"
import type { IconName } from "./components/Icon.tsx"
import { texts } from "./texts/en.ts"

export interface PageProps {
  /** The part of the address that matches `:name`. */
  readonly params: Readonly<Record<string, string>>
}

/** The groups of the navigation, in its order. */
export const groups = ["home", "operate", "build", "observe", "account"] as const
export type Group = (typeof groups)[number]

export interface Route {
  /** Below `/console`. `:name` is one part of the path. */
  readonly path: string
  readonly title: string
  /** Whose page it is. The operator sees a user's pages when viewing as one. */
  readonly role: "user" | "operator" | "both"
  /** Where the navigation has it; none: it is opened from another page. */
  readonly group?: Group
  readonly icon?: IconName
  /** The page, a chunk of its own. */
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>
}

/** All pages, in the order of the navigation. */
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
    load: () => import("./pages/users/UsersPage.tsx")
  },
  {
    path: "/users/:id",
    title: texts.pages.user,
    role: "operator",
    load: () => import("./pages/user/UserPage.tsx")
  },
  {
    path: "/accounts",
    title: texts.pages.accounts,
    role: "operator",
    group: "operate",
    icon: "server",
    load: () => import("./pages/accounts/AccountsPage.tsx")
  },
  {
    path: "/catalog",
    title: texts.pages.catalog,
    role: "operator",
    group: "operate",
    icon: "tag",
    load: () => import("./pages/catalog/CatalogPage.tsx")
  },
  {
    path: "/bills",
    title: texts.pages.bills,
    role: "operator",
    group: "operate",
    icon: "page",
    load: () => import("./pages/bills/BillsPage.tsx")
  },
  {
    path: "/playground",
    title: texts.pages.playground,
    role: "user",
    group: "build",
    icon: "spark",
    load: () => import("./pages/playground/PlaygroundPage.tsx")
  },
  {
    path: "/models",
    title: texts.pages.models,
    role: "both",
    group: "build",
    icon: "cube",
    load: () => import("./pages/models/ModelsPage.tsx")
  },
  {
    path: "/models/:vendor/:model",
    title: texts.pages.model,
    role: "both",
    load: () => import("./pages/model/ModelPage.tsx")
  },
  {
    path: "/keys",
    title: texts.pages.keys,
    role: "user",
    group: "build",
    icon: "key",
    load: () => import("./pages/keys/KeysPage.tsx")
  },
  {
    path: "/tasks",
    title: texts.pages.tasks,
    role: "both",
    group: "observe",
    icon: "list",
    load: () => import("./pages/tasks/TasksPage.tsx")
  },
  {
    path: "/tasks/:id",
    title: texts.pages.task,
    role: "user",
    load: () => import("./pages/task/TaskPage.tsx")
  },
  {
    path: "/gallery",
    title: texts.pages.gallery,
    role: "user",
    group: "observe",
    icon: "pictures",
    load: () => import("./pages/gallery/GalleryPage.tsx")
  },
  {
    path: "/calls",
    title: texts.pages.calls,
    role: "both",
    group: "observe",
    icon: "arrows",
    load: () => import("./pages/calls/CallsPage.tsx")
  },
  {
    path: "/calls/:id",
    title: texts.pages.call,
    role: "user",
    load: () => import("./pages/call/CallPage.tsx")
  },
  {
    path: "/usage",
    title: texts.pages.usage,
    role: "both",
    group: "observe",
    icon: "bars",
    load: () => import("./pages/usage/UsagePage.tsx")
  },
  {
    path: "/webhooks",
    title: texts.pages.webhooks,
    role: "user",
    group: "observe",
    icon: "send",
    load: () => import("./pages/webhooks/WebhooksPage.tsx")
  },
  {
    path: "/webhooks/deliveries",
    title: texts.pages.deliveries,
    role: "user",
    load: () => import("./pages/deliveries/DeliveriesPage.tsx")
  },
  {
    path: "/webhooks/deliveries/:id",
    title: texts.pages.delivery,
    role: "user",
    load: () => import("./pages/delivery/DeliveryPage.tsx")
  },
  {
    path: "/webhooks/signature",
    title: texts.pages.signature,
    role: "user",
    load: () => import("./pages/signature/SignaturePage.tsx")
  },
  {
    path: "/wallet",
    title: texts.pages.wallet,
    role: "user",
    group: "account",
    icon: "wallet",
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
    load: () => import("./pages/sessions/SessionsPage.tsx")
  },
  {
    path: "/audit-log",
    title: texts.pages.audit,
    role: "both",
    group: "account",
    icon: "page",
    load: () => import("./pages/audit/AuditPage.tsx")
  }
]
