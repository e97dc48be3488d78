import { session } from "../../api/session.ts"
import { viewedUser } from "../../router/location.ts"
import { OperatorHome } from "./OperatorHome.tsx"
import { UserHome } from "./UserHome.tsx"

/** `/`: what stands now, for a user or for the operator. */
export default function HomePage() {
  return session.value?.role === "operator" && viewedUser() === undefined ? (
    <OperatorHome />
  ) : (
    <UserHome />
  )
}
