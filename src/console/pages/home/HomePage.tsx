import { session } from "../../api/session.ts"
import { viewedUser } from "../../router/location.ts"
import { OperatorHome } from "./OperatorHome.tsx"
import { UserHome } from "./UserHome.tsx"

/** `/`: the current state, for a user or for the operator. */
export default function HomePage() {
  return session.value?.role === "operator" && viewedUser() === undefined ? (
    <OperatorHome />
  ) : (
    <UserHome />
  )
}
