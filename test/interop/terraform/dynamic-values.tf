# Values of every kind that Terraform wraps together with their type.
resource "terraform_data" "t" {
  for_each = {
    tuple  = [1, "a", [true, null], {}]
    obj    = { value = 1, type = "string" }
    nested = { a = { value = "x", type = ["list", "string"] }, b = [{ c = 1.10 }] }
    nul    = null
    str    = "line\nnext\ttab \u2028 \u00a0 <>&' é ☃ 😀"
    num    = 1e100
    neg    = -0.0001
    elist  = []
    big    = 123456789012345678901234567890.123456789
    set    = toset(["b", "a"])
    map    = tomap({ z = "1", a = "2" })
    wrap   = { value = [1, 2], type = ["tuple", ["number", "number"]] }
  }
  input            = each.value
  triggers_replace = each.key == "set" ? { t = each.value } : null
}
