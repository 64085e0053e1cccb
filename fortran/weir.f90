! SPDX-License-Identifier: Apache-2.0
! libweir for Fortran 2018: everything a program uses. docs/guide/output.md begins with an example.
!
! Each procedure has the optional arguments stat (a weir_status, 0 when all is well) and errmsg.
! Without stat an error ends the program with a message that names rank and procedure. Indices count
! from 1.
module weir
  use weir_grids, only: weir_axis_t, weir_context_t, weir_costs_t, weir_decomposition_t, &
      weir_grid_t, weir_init, &
    weir_serve
  use weir_fields, only: weir_accumulate, weir_field_t, weir_float32, weir_float64, weir_instant, &
      weir_int16, weir_int32, &
    weir_int64, weir_int8, weir_maximum, weir_mean, weir_minimum, weir_stream_t
  implicit none (type, external)
  public
end module weir
